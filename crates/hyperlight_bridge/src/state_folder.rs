//! A folder with a kept state: whose it is, what is in it, and when its digests were last checked.
//!
//! It is opened once, and all work goes through that descriptor: whoever renames its path meanwhile changes nothing. It is
//! used only where nobody else can have written to it, or can put another folder in its place.
use std::collections::BTreeMap;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What was seen of the files when their digests were last checked.
const CHECKED: &str = "checked.json";
/// The longest of these files, in bytes.
const CHECKED_BYTES: u64 = 1024 * 1024;
/// What else a kept state consists of: an OCI layout.
const LAYOUT: [&str; 3] = ["oci-layout", "index.json", "blobs"];
/// Others than the owner may write.
const WRITABLE_BY_OTHERS: u32 = 0o022;
/// In a folder with this bit only the owner of an entry can rename or remove it.
const STICKY: u32 = 0o1000;

/// Size, modification time in nanoseconds, and inode of each file.
pub(crate) type Seen = BTreeMap<PathBuf, (u64, i128, u64)>;

/// An open folder.
pub(crate) struct StateFolder {
    handle: File,
    shown: PathBuf,
    path: PathBuf,
}

impl StateFolder {
    /// Opens `folder`, after making sure that only this user decides what it is.
    pub(crate) fn open(folder: &Path) -> Result<Self, String> {
        nobody_else_decides(folder)?;
        let handle = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW)
            .open(folder)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()));
        Ok(Self { handle, shown: folder.to_owned(), path })
    }

    /// A path that leads to it as long as it is open.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Every file in it, after making sure that only this user can have written to it.
    pub(crate) fn look(&self) -> Result<Seen, String> {
        let metadata = self.handle.metadata().map_err(|error| format!("{}: {error}", self.shown.display()))?;
        only_ours(&self.shown, &metadata)?;
        let mut seen = Seen::new();
        let mut pending = vec![self.path.clone()];
        while let Some(current) = pending.pop() {
            let failed = |error| format!("{}: {error}", self.shown(&current).display());
            for entry in fs::read_dir(&current).map_err(failed)? {
                let path = entry.map_err(failed)?.path();
                let metadata = fs::symlink_metadata(&path).map_err(failed)?;
                let name = path.strip_prefix(&self.path).unwrap_or(&path).to_owned();
                if name == Path::new(CHECKED) {
                    continue; // looked at when it is read
                }
                only_ours(&self.shown.join(&name), &metadata)?;
                if metadata.is_dir() {
                    pending.push(path);
                } else {
                    let time = i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
                    seen.insert(name, (metadata.len(), time, metadata.ino()));
                }
            }
        }
        Ok(seen)
    }

    /// What was seen when the digests were last checked, if that is known.
    pub(crate) fn remembered(&self) -> Option<Seen> {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(self.path.join(CHECKED))
            .ok()?;
        let metadata = file.metadata().ok()?;
        only_ours(Path::new(CHECKED), &metadata).ok()?;
        let mut text = Vec::new();
        if !metadata.is_file() || file.take(CHECKED_BYTES).read_to_end(&mut text).is_err() {
            return None;
        }
        serde_json::from_slice(&text).ok()
    }

    /// Notes what was seen. Not being able to is no fault: the next load checks again.
    pub(crate) fn remember(&self, seen: &Seen) {
        let unfinished = self.path.join(format!(".{CHECKED}-{:x}", rand::random::<u64>()));
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&unfinished)
            .and_then(|mut file| file.write_all(&serde_json::to_vec(seen)?))
            .and_then(|()| fs::rename(&unfinished, self.path.join(CHECKED)));
        if written.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
    }

    fn shown(&self, path: &Path) -> PathBuf {
        self.shown.join(path.strip_prefix(&self.path).unwrap_or(path))
    }
}

/// Whether there is nothing in a folder of this user but what a kept state, also a damaged one, consists of.
pub(crate) fn holds_only_a_state(folder: &Path) -> bool {
    let ours = fs::symlink_metadata(folder).is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == own_user());
    let Ok(mut entries) = fs::read_dir(folder) else { return false };
    ours && entries.all(|entry| {
        entry.is_ok_and(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            LAYOUT.contains(&&*name) || name.trim_start_matches('.').starts_with(CHECKED)
        })
    })
}

/// Whether a folder holds a whole state: an OCI layout with this tag.
pub(crate) fn is_state(folder: &Path, tag: &str) -> bool {
    let index = File::open(folder.join("index.json")).and_then(|file| {
        let mut text = String::new();
        file.take(CHECKED_BYTES).read_to_string(&mut text).map(|_| text)
    });
    holds_only_a_state(folder)
        && folder.join("oci-layout").is_file()
        && index.is_ok_and(|text| text.contains(&format!("{tag:?}")))
}

/// Fails where somebody else could put another folder in place of this one.
pub(crate) fn nobody_else_decides(folder: &Path) -> Result<(), String> {
    let parent = match folder.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    // What does not exist yet is made by this process.
    let existing = parent.ancestors().find(|path| path.exists()).unwrap_or(Path::new("."));
    let above = fs::canonicalize(existing).map_err(|error| format!("{}: {error}", existing.display()))?;
    for folder in above.ancestors() {
        let metadata = fs::metadata(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        if ![0, own_user()].contains(&metadata.uid()) {
            return Err(format!("{}, above it, belongs to another user", folder.display()));
        }
        if metadata.mode() & WRITABLE_BY_OTHERS != 0 && metadata.mode() & STICKY == 0 {
            return Err(format!("others may write to {}, above it", folder.display()));
        }
    }
    Ok(())
}

fn only_ours(path: &Path, metadata: &Metadata) -> Result<(), String> {
    if !metadata.is_dir() && !metadata.is_file() {
        return Err(format!("{} is not a plain file", path.display()));
    }
    if metadata.uid() != own_user() {
        return Err(format!("{} belongs to another user", path.display()));
    }
    if metadata.mode() & WRITABLE_BY_OTHERS != 0 {
        return Err(format!("others may write to {}", path.display()));
    }
    Ok(())
}

fn own_user() -> u32 {
    fs::metadata("/proc/self").map_or(u32::MAX, |process| process.uid())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("wcpod-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(folder.join("state")).unwrap();
            fs::set_permissions(folder.join("state"), fs::Permissions::from_mode(0o700)).unwrap();
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
            Self(folder)
        }

        fn state(&self) -> PathBuf {
            self.0.join("state")
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_was_seen_is_remembered() {
        let scratch = Scratch::new("remember");
        fs::write(scratch.state().join("index.json"), "x").unwrap();
        let folder = StateFolder::open(&scratch.state()).unwrap();
        let seen = folder.look().unwrap();
        assert_eq!(seen.keys().collect::<Vec<_>>(), [Path::new("index.json")]);
        assert_eq!(folder.remembered(), None);
        folder.remember(&seen);
        assert_eq!(folder.remembered(), Some(seen.clone()));
        assert_eq!(folder.look(), Ok(seen));
    }

    #[test]
    fn a_link_or_a_pipe_in_place_of_the_note_is_neither_read_nor_written_through() {
        let scratch = Scratch::new("note");
        let note = scratch.state().join(CHECKED);
        fs::write(scratch.0.join("precious"), "{}").unwrap();
        symlink("../precious", &note).unwrap();
        let folder = StateFolder::open(&scratch.state()).unwrap();
        assert_eq!(folder.remembered(), None);
        folder.remember(&folder.look().unwrap());
        assert_eq!(fs::read_to_string(scratch.0.join("precious")).unwrap(), "{}");
        assert!(fs::symlink_metadata(&note).unwrap().is_file());
        fs::remove_file(&note).unwrap();
        let name = std::ffi::CString::new(note.to_str().unwrap()).unwrap();
        // SAFETY: `name` is a C string that lives until the call returns.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        assert_eq!(folder.remembered(), None);
    }

    #[test]
    fn what_others_may_write_to_is_refused() {
        let scratch = Scratch::new("others");
        let refused = |path: &Path, mode: u32| {
            let before = fs::metadata(path).unwrap().permissions();
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
            let found = StateFolder::open(&scratch.state()).and_then(|folder| folder.look()).err();
            fs::set_permissions(path, before).unwrap();
            found
        };
        let (above, state) = (scratch.0.clone(), scratch.state());
        assert_eq!(refused(&state, 0o770), Some(format!("others may write to {}", state.display())));
        for mode in [0o777, 0o775] {
            assert_eq!(refused(&above, mode), Some(format!("others may write to {}, above it", above.display())));
        }
        assert_eq!(refused(&above, 0o1777), None);
        let file = state.join("index.json");
        fs::write(&file, "x").unwrap();
        assert_eq!(refused(&file, 0o606), Some(format!("others may write to {}", file.display())));
        symlink("index.json", state.join("link")).unwrap();
        assert_eq!(refused(&file, 0o600), Some(format!("{} is not a plain file", state.join("link").display())));
    }

    #[test]
    fn a_folder_stays_the_same_whatever_its_path_leads_to() {
        let scratch = Scratch::new("renamed");
        fs::write(scratch.state().join("index.json"), "good").unwrap();
        let folder = StateFolder::open(&scratch.state()).unwrap();
        fs::rename(scratch.state(), scratch.0.join("elsewhere")).unwrap();
        fs::create_dir(scratch.state()).unwrap();
        fs::write(scratch.state().join("index.json"), "evil").unwrap();
        assert_eq!(fs::read_to_string(folder.path().join("index.json")).unwrap(), "good");
    }

    #[test]
    fn a_link_to_a_folder_is_refused() {
        let scratch = Scratch::new("link");
        symlink("state", scratch.0.join("link")).unwrap();
        assert!(StateFolder::open(&scratch.0.join("link")).is_err());
    }

    #[test]
    fn states_are_told_from_other_folders() {
        let scratch = Scratch::new("told");
        let state = scratch.state();
        assert!(!is_state(&state, "clean"));
        fs::write(state.join("oci-layout"), "{}").unwrap();
        fs::write(state.join("index.json"), r#"{"name": "clean"}"#).unwrap();
        assert!(is_state(&state, "clean"));
        assert!(!is_state(&state, "other"));
        fs::write(state.join("thesis.txt"), "years of work").unwrap();
        assert!(!is_state(&state, "clean") && !holds_only_a_state(&state));
    }
}
