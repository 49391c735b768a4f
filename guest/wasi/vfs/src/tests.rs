use super::*;
use alloc::string::String;

/// An archive of `/lib/hello.py` and `/lib/json/__init__.py`.
pub(super) fn archive_bytes() -> &'static [u8] {
    let hello = b"print('hello')\n";
    let json = b"# json\n";
    // (name, kind, start, length)
    let nodes: [(&str, u16, u32, u32); 5] = [
        ("", 0, 1, 1),
        ("lib", 0, 2, 2),
        ("hello.py", 1, 0, hello.len() as u32),
        ("json", 0, 4, 1),
        ("__init__.py", 1, hello.len() as u32, json.len() as u32),
    ];
    let names: String = nodes.iter().map(|node| node.0).collect();
    let mut bytes = b"WCPODFS1".to_vec();
    bytes.extend((nodes.len() as u32).to_le_bytes());
    bytes.extend((names.len() as u32).to_le_bytes());
    let mut name_start = 0u32;
    for (name, kind, start, length) in nodes {
        bytes.extend(name_start.to_le_bytes());
        bytes.extend((name.len() as u16).to_le_bytes());
        bytes.extend(kind.to_le_bytes());
        bytes.extend(start.to_le_bytes());
        bytes.extend(length.to_le_bytes());
        name_start += name.len() as u32;
    }
    bytes.extend(names.bytes());
    bytes.resize(bytes.len().next_multiple_of(4096), 0);
    bytes.extend(hello);
    bytes.extend(json);
    bytes.leak()
}

const WRITE: Open = Open { create: true, directory: false, exclusive: false, truncate: true, write: true };
const NOW: u64 = 1_800_000_000_000_000_000;

fn files() -> Vfs {
    let limits = Limits { bytes: 64 << 10, files: 8, open: 4 };
    Vfs::new(Archive::new(archive_bytes()).expect("the sample is an archive"), limits)
}

fn write(files: &mut Vfs, path: &str, bytes: &[u8]) -> Result<(), Error> {
    let node = files.open(ROOT, path, WRITE, NOW)?;
    let outcome = files.write(node, 0, bytes, NOW);
    files.close(node);
    outcome
}

fn read(files: &mut Vfs, path: &str) -> Result<Vec<u8>, Error> {
    let node = files.open(ROOT, path, Open::default(), NOW)?;
    let bytes = files.read(node, 0, 1 << 20);
    files.close(node);
    bytes
}

fn names(files: &Vfs, path: &str) -> Vec<String> {
    let node = files.look_up(ROOT, path).expect("the directory");
    files.list(node).expect("a directory").into_iter().map(|(name, _)| name.into_owned()).collect()
}

#[test]
fn the_root_has_the_archive_and_the_folders() {
    let files = files();
    assert_eq!(names(&files, "/"), ["dev", "input", "lib", "output", "tmp"]);
    assert_eq!(names(&files, "lib"), ["hello.py", "json"]);
    assert_eq!(files.look_up(ROOT, "etc/passwd"), Err(Error::NoEntry));
}

#[test]
fn paths_are_followed_and_stay_inside() {
    let files = files();
    let json = files.look_up(ROOT, "/lib/json").expect("json");
    for same in ["lib/json", "./lib//json/", "lib/json/.", "lib/json/../json", "../../lib/json", "tmp/../lib/json"] {
        assert_eq!(files.look_up(ROOT, same), Ok(json), "{same}");
    }
    assert_eq!(files.look_up(json, "../hello.py"), Err(Error::NotPermitted));
    assert_eq!(files.look_up(ROOT, "lib/hello.py/x"), Err(Error::NotDirectory));
    assert_eq!(files.look_up(ROOT, "lib/hello.py/.."), Err(Error::NotDirectory));
    assert_eq!(files.look_up(ROOT, ""), Err(Error::NoEntry));
    assert_eq!(files.look_up(ROOT, "a\0b"), Err(Error::Invalid));
    assert_eq!(files.look_up(ROOT, &"x".repeat(256)), Err(Error::NameTooLong));
    assert_eq!(files.look_up(ROOT, &"x/".repeat(3000)), Err(Error::NameTooLong));
}

#[test]
fn files_are_written_read_and_removed() {
    let mut files = files();
    write(&mut files, "/tmp/a.txt", b"one").expect("a file");
    assert_eq!(read(&mut files, "tmp/a.txt"), Ok(b"one".to_vec()));
    write(&mut files, "/tmp/a.txt", b"2").expect("the same file");
    assert_eq!(read(&mut files, "tmp/a.txt"), Ok(b"2".to_vec()));
    let stat = files.stat(files.look_up(ROOT, "tmp/a.txt").expect("it")).expect("its stat");
    assert_eq!((stat.kind, stat.size, stat.modified), (Kind::File, 1, NOW));
    files.unlink(ROOT, "tmp/a.txt", NOW).expect("removed");
    assert_eq!(read(&mut files, "tmp/a.txt"), Err(Error::NoEntry));
    assert_eq!((files.files, files.bytes, files.open), (0, 0, 0));
}

#[test]
fn a_file_lives_until_its_last_descriptor() {
    let mut files = files();
    let node = files.open(ROOT, "tmp/a", WRITE, NOW).expect("a file");
    files.hold(node).expect("a stream on it");
    files.unlink(ROOT, "tmp/a", NOW).expect("removed");
    files.write(node, 0, b"still here", NOW).expect("written");
    files.close(node);
    assert_eq!(files.read(node, 6, 100), Ok(b"here".to_vec()));
    files.close(node);
    assert_eq!(files.stat(node), Err(Error::NoEntry));
    assert_eq!((files.files, files.bytes), (0, 0));
}

#[test]
fn the_rest_is_read_only() {
    let mut files = files();
    for path in ["lib/hello.py", "lib/new.py", "new", "dev/new", "input/new"] {
        assert_eq!(write(&mut files, path, b"x"), Err(Error::ReadOnly), "{path}");
    }
    assert_eq!(files.unlink(ROOT, "lib/hello.py", NOW), Err(Error::ReadOnly));
    assert_eq!(files.remove_directory(ROOT, "lib/json", NOW), Err(Error::ReadOnly));
    assert_eq!(files.remove_directory(ROOT, "tmp", NOW), Err(Error::ReadOnly));
    assert_eq!(files.remove_directory(ROOT, "/", NOW), Err(Error::Busy));
    assert_eq!(files.create_directory(ROOT, "x", NOW), Err(Error::ReadOnly));
    assert_eq!(files.rename((ROOT, "lib/hello.py"), (ROOT, "tmp/hello.py"), NOW), Err(Error::ReadOnly));
    assert_eq!(read(&mut files, "lib/hello.py"), Ok(b"print('hello')\n".to_vec()));
}

#[test]
fn nothing_becomes_of_what_goes_to_null() {
    let mut files = files();
    write(&mut files, "/dev/null", &[7; 100_000]).expect("taken");
    assert_eq!(read(&mut files, "/dev/null"), Ok(Vec::new()));
    assert_eq!(files.bytes, 0);
}

#[test]
fn opening_says_what_is_wrong() {
    let mut files = files();
    let mut open = |path, how| files.open(ROOT, path, how, NOW).err();
    assert_eq!(open("tmp", WRITE), Some(Error::IsDirectory));
    assert_eq!(open("tmp/new/", WRITE), Some(Error::NoEntry));
    assert_eq!(open("tmp/no/new", WRITE), Some(Error::NoEntry));
    assert_eq!(open("lib/hello.py", Open { directory: true, ..Open::default() }), Some(Error::NotDirectory));
    assert_eq!(open("lib/hello.py/", Open::default()), Some(Error::NotDirectory));
    let exclusive = Open { exclusive: true, ..WRITE };
    assert_eq!(open("tmp/a", exclusive), None);
    assert_eq!(open("tmp/a", exclusive), Some(Error::Exists));
}

#[test]
fn directories_are_made_moved_and_removed() {
    let mut files = files();
    files.create_directory(ROOT, "tmp/a", NOW).expect("made");
    files.create_directory(ROOT, "tmp/a/b/", NOW).expect("made");
    assert_eq!(files.create_directory(ROOT, "tmp/a", NOW), Err(Error::Exists));
    assert_eq!(files.create_directory(ROOT, "tmp/x/y", NOW), Err(Error::NoEntry));
    write(&mut files, "tmp/a/f", b"f").expect("written");
    assert_eq!(files.remove_directory(ROOT, "tmp/a", NOW), Err(Error::NotEmpty));
    assert_eq!(files.remove_directory(ROOT, "tmp/a/f", NOW), Err(Error::NotDirectory));
    assert_eq!(files.unlink(ROOT, "tmp/a", NOW), Err(Error::IsDirectory));
    assert_eq!(files.rename((ROOT, "tmp/a"), (ROOT, "tmp/a/b/c"), NOW), Err(Error::Invalid));
    files.rename((ROOT, "tmp/a"), (ROOT, "output/c"), NOW).expect("moved");
    assert_eq!(names(&files, "tmp"), Vec::<String>::new());
    assert_eq!(names(&files, "output/c"), ["b", "f"]);
    files.unlink(ROOT, "output/c/f", NOW).expect("removed");
    files.remove_directory(ROOT, "output/c/b", NOW).expect("removed");
    files.remove_directory(ROOT, "output/c", NOW).expect("removed");
    assert_eq!((files.files, files.bytes), (0, 0));
}

#[test]
fn renaming_replaces_like_with_like() {
    let mut files = files();
    write(&mut files, "tmp/a", b"a").expect("written");
    write(&mut files, "tmp/b", b"b").expect("written");
    files.create_directory(ROOT, "tmp/d", NOW).expect("made");
    files.rename((ROOT, "tmp/a"), (ROOT, "tmp/a"), NOW).expect("nothing to do");
    files.rename((ROOT, "tmp/a"), (ROOT, "tmp/b"), NOW).expect("replaced");
    assert_eq!(read(&mut files, "tmp/b"), Ok(b"a".to_vec()));
    assert_eq!(files.files, 2);
    assert_eq!(files.rename((ROOT, "tmp/b"), (ROOT, "tmp/d"), NOW), Err(Error::IsDirectory));
    assert_eq!(files.rename((ROOT, "tmp/d"), (ROOT, "tmp/b"), NOW), Err(Error::NotDirectory));
}

#[test]
fn the_limits_hold() {
    let mut files = files();
    assert_eq!(write(&mut files, "tmp/big", &[1; 70_000]), Err(Error::NoSpace));
    write(&mut files, "tmp/big", &[1; 60_000]).expect("fits");
    assert_eq!(write(&mut files, "tmp/more", &[1; 8_000]), Err(Error::NoSpace));
    files.unlink(ROOT, "tmp/big", NOW).expect("removed");
    write(&mut files, "tmp/more", &[1; 8_000]).expect("fits now");
    let node = files.look_up(ROOT, "tmp/more").expect("it");
    assert_eq!(files.write(node, u64::MAX - 1, b"xx", NOW), Err(Error::NoSpace));
    assert_eq!(files.set_size(node, 1 << 40, NOW), Err(Error::NoSpace));
    for number in 0..7 {
        write(&mut files, &alloc::format!("tmp/{number}"), b"").expect("fits");
    }
    assert_eq!(write(&mut files, "tmp/8", b""), Err(Error::NoSpace));
    assert_eq!(files.create_directory(ROOT, "tmp/8", NOW), Err(Error::NoSpace));
    for _ in 0..4 {
        files.open(ROOT, "lib", Open::default(), NOW).expect("opened");
    }
    assert_eq!(files.open(ROOT, "lib", Open::default(), NOW), Err(Error::TooManyOpen));
}

#[test]
fn the_host_places_files_and_reads_them_back() {
    let mut files = files();
    files.place("/input", "data/teams.csv", b"a,b\n".to_vec(), NOW).expect("placed");
    files.place("/input", "data/more.csv", b"".to_vec(), NOW).expect("placed");
    assert_eq!(read(&mut files, "/input/data/teams.csv"), Ok(b"a,b\n".to_vec()));
    assert_eq!(write(&mut files, "/input/data/teams.csv", b"x"), Err(Error::ReadOnly));
    assert_eq!(write(&mut files, "/input/data/new.csv", b"x"), Err(Error::ReadOnly));
    files.place("/input", "data/teams.csv", b"c\n".to_vec(), NOW).expect("placed anew");
    assert_eq!(read(&mut files, "/input/data/teams.csv"), Ok(b"c\n".to_vec()));
    assert_eq!(files.place("/input", "data", Vec::new(), NOW), Err(Error::Exists));
    for path in ["", "/", "/x", "a//b", "a/../b", "./a", "a/", "a\0"] {
        assert_eq!(files.place("/input", path, Vec::new(), NOW), Err(Error::Invalid), "{path:?}");
    }

    files.create_directory(ROOT, "output/charts", NOW).expect("made");
    write(&mut files, "output/z.txt", b"zz").expect("written");
    write(&mut files, "output/charts/a.svg", b"<svg/>").expect("written");
    let left = files.left("/output");
    assert_eq!(
        left.iter().map(|file| (&*file.path, file.size)).collect::<Vec<_>>(),
        [("charts/a.svg", 6), ("z.txt", 2)]
    );
    assert_eq!(files.read(left[0].node, 0, 100), Ok(b"<svg/>".to_vec()));
}
