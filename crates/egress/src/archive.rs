//! A folder of pages that stands in for the network, below the same policy.
//!
//! `index.jsonl` has one JSON object a line; of several with the same URL the last counts:
//! `{"url": "…", "status": 200, "content_type": "text/html; charset=utf-8", "location": null,
//! "file": "relative/name.html", "sha256": "…", "cut": "bound"}`. `location` is for redirects; `sha256`
//! is checked; `cut`, of a page that is not whole, is `bound` or `connection`. `file` holds the decompressed body; it is
//! relative to the folder and may not leave it.

use std::collections::HashMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use url::Url;

use crate::answer::Answer;
use crate::audit::hex_sha256;
use crate::decompress::Cut;
use crate::plain_file;
use crate::stop::Stop;
use crate::target::Target;

/// The file that lists an archive's pages.
const INDEX: &str = "index.jsonl";
/// The longest line of an index, in bytes.
const LINE_BYTES: u64 = 64 * 1024;

/// One line of the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) url: String,
    pub(crate) status: u16,
    #[serde(default)]
    pub(crate) content_type: Option<String>,
    #[serde(default)]
    pub(crate) location: Option<String>,
    #[serde(default)]
    pub(crate) file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sha256: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cut: Option<Cut>,
}

/// An archive that cannot be used.
#[derive(Debug)]
pub enum ArchiveError {
    /// The folder or its index cannot be read, or a record folder cannot be written.
    Io {
        /// What was opened.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// A line of the index is not an entry, or its file leaves the folder.
    BadLine {
        /// The index.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
}

impl fmt::Display for ArchiveError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, source } => write!(out, "{}: {source}", path.display()),
            Self::BadLine { path, line, reason } => {
                write!(out, "{} line {line}: {reason}", path.display())
            }
        }
    }
}

impl std::error::Error for ArchiveError {}

/// An archive that is read.
#[derive(Debug)]
pub(crate) struct Archive {
    folder: PathBuf,
    entries: HashMap<String, Entry>,
}

impl Archive {
    pub(crate) fn open(folder: &Path) -> Result<Self, ArchiveError> {
        let path = folder.join(INDEX);
        let failed = |source| ArchiveError::Io { path: path.clone(), source };
        let folder = folder.canonicalize().map_err(failed)?;
        let mut index = BufReader::new(plain_file::read(&path).map_err(failed)?);
        let mut entries = HashMap::new();
        for number in 1.. {
            let mut line = Vec::new();
            let read = (&mut index).take(LINE_BYTES).read_until(b'\n', &mut line).map_err(failed)?;
            if read == 0 {
                break;
            }
            if line.trim_ascii().is_empty() {
                continue;
            }
            let (key, entry) = read_line(&line).map_err(|reason| ArchiveError::BadLine {
                path: path.clone(),
                line: number,
                reason,
            })?;
            entries.insert(key, entry);
        }
        Ok(Self { folder, entries })
    }

    /// The archived response to `target`.
    pub(crate) fn answer(&self, target: &Target) -> Result<Answer, Stop> {
        let entry = self
            .entries
            .get(target.url().as_str())
            .ok_or_else(|| Stop::failed(format!("{} is not in the archive", target.url())))?;
        Ok(Answer {
            status: entry.status,
            content_type: entry.content_type.clone(),
            content_encoding: None,
            location: entry.location.clone(),
            retry_after: None,
            cut: entry.cut,
            sha256: entry.sha256.as_ref().map(|hash| hash.to_ascii_lowercase()),
            body: self.body(entry)?,
        })
    }

    fn body(&self, entry: &Entry) -> Result<Box<dyn Read>, Stop> {
        let Some(name) = &entry.file else {
            return Ok(Box::new(io::empty()));
        };
        let failed = |error: io::Error| Stop::failed(format!("the archive's file {name:?} cannot be read: {error}"));
        let path = self.folder.join(name).canonicalize().map_err(failed)?;
        if !path.starts_with(&self.folder) {
            return Err(Stop::failed(format!("the archive's file {name:?} leaves the archive")));
        }
        Ok(Box::new(plain_file::read(&path).map_err(failed)?))
    }
}

fn read_line(line: &[u8]) -> Result<(String, Entry), String> {
    let entry: Entry = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let mut url = Url::parse(&entry.url).map_err(|error| format!("{:?}: {error}", entry.url))?;
    url.set_fragment(None);
    if let Some(file) = &entry.file
        && !stays_inside(Path::new(file))
    {
        return Err(format!("the file {file:?} leaves the archive"));
    }
    Ok((url.into(), entry))
}

fn stays_inside(file: &Path) -> bool {
    file.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

/// A folder to which every response of a run is written, in the archive's format.
#[derive(Debug)]
pub(crate) struct Recorder {
    folder: PathBuf,
    index: Mutex<File>,
}

impl Recorder {
    pub(crate) fn open(folder: &Path) -> Result<Self, ArchiveError> {
        let failed = |path: &Path, source| ArchiveError::Io { path: path.to_owned(), source };
        let pages = folder.join("pages");
        fs::create_dir_all(&pages).map_err(|error| failed(&pages, error))?;
        let path = folder.join(INDEX);
        let index = plain_file::append(&path).map_err(|error| failed(&path, error))?;
        Ok(Self { folder: folder.to_owned(), index: Mutex::new(index) })
    }

    /// Writes a response; `body` is decompressed, and its file is named by its hash.
    pub(crate) fn record(&self, mut entry: Entry, body: Option<&[u8]>) -> io::Result<()> {
        if let Some(body) = body {
            let hash = hex_sha256(body);
            let name = format!("pages/{hash}.{}", extension(entry.content_type.as_deref()));
            self.write_page(&name, body)?;
            entry.file = Some(name);
            entry.sha256 = Some(hash);
        }
        let mut line = serde_json::to_vec(&entry)?;
        line.push(b'\n');
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        index.write_all(&line)
    }

    /// Whole or not at all: a page is written under another name and moved into place.
    fn write_page(&self, name: &str, body: &[u8]) -> io::Result<()> {
        let path = self.folder.join(name);
        if path.exists() {
            return Ok(());
        }
        let thread = format!("{:?}", std::thread::current().id());
        let thread: String = thread.chars().filter(char::is_ascii_digit).collect();
        let unfinished = path.with_extension(format!("{}-{thread}.part", std::process::id()));
        plain_file::write(&unfinished)?.write_all(body)?;
        fs::rename(&unfinished, &path)
    }
}

fn extension(content_type: Option<&str>) -> &'static str {
    let essence = content_type.and_then(|header| header.split(';').next());
    match essence.unwrap_or_default().trim() {
        "application/json" => "json",
        "text/plain" => "txt",
        "text/xml" | "application/xml" => "xml",
        _ => "html",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::FetchPolicy;

    fn folder(index: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("folder");
        fs::write(folder.path().join(INDEX), index).expect("index");
        folder
    }

    fn target(url: &str) -> Target {
        FetchPolicy::new(["bbc.com", "www.bbc.com"]).expect("hosts").admit(url).expect(url)
    }

    fn body(answer: Answer) -> String {
        let mut body = String::new();
        let mut reader = answer.body;
        reader.read_to_string(&mut body).expect("body");
        body
    }

    #[test]
    fn what_is_recorded_can_be_replayed() {
        let folder = tempfile::tempdir().expect("folder");
        let recorder = Recorder::open(folder.path()).expect("record");
        let entry = |url: &str, status| Entry {
            url: url.into(),
            status,
            content_type: Some("text/html; charset=utf-8".into()),
            location: None,
            file: None,
            sha256: None,
            cut: None,
        };
        recorder.record(entry("https://bbc.com/x", 200), Some(b"old")).expect("record");
        recorder.record(entry("https://bbc.com/x", 200), Some(b"new")).expect("record");
        recorder.record(entry("https://bbc.com/x", 200), Some(b"new")).expect("record");
        recorder.record(entry("https://bbc.com/gone", 404), None).expect("record");
        let archive = Archive::open(folder.path()).expect("archive");
        let answer = archive.answer(&target("https://bbc.com/x#fragment")).expect("there");
        assert_eq!(answer.status, 200);
        assert_eq!(answer.sha256, Some(hex_sha256(b"new")));
        assert_eq!(body(answer), "new");
        let gone = archive.answer(&target("https://bbc.com/gone")).expect("there");
        assert_eq!((gone.status, body(gone).as_str()), (404, ""));
        assert_eq!(fs::read_dir(folder.path().join("pages")).expect("pages").count(), 2);
    }

    #[test]
    fn a_url_that_is_not_there_says_so() {
        let folder = folder("");
        let archive = Archive::open(folder.path()).expect("archive");
        assert_eq!(
            archive.answer(&target("https://bbc.com/x")).err(),
            Some(Stop::failed("https://bbc.com/x is not in the archive"))
        );
    }

    #[test]
    fn urls_are_compared_after_parsing() {
        let folder = folder("\n{\"url\": \"HTTPS://BBC.com:443#top\", \"status\": 204}\n");
        let archive = Archive::open(folder.path()).expect("archive");
        assert!(archive.answer(&target("https://bbc.com/")).is_ok());
    }

    #[test]
    fn files_stay_inside_the_folder() {
        for file in ["../x", "/etc/passwd", "a/../../x", "a/../x"] {
            let folder = folder(&format!("{{\"url\": \"https://bbc.com/\", \"status\": 200, \"file\": \"{file}\"}}"));
            let error = Archive::open(folder.path()).expect_err(file).to_string();
            assert!(error.ends_with(&format!("line 1: the file \"{file}\" leaves the archive")), "{error}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_do_not_lead_out_either() {
        let outside = tempfile::NamedTempFile::new().expect("file");
        let folder = folder("{\"url\": \"https://bbc.com/\", \"status\": 200, \"file\": \"link\"}");
        std::os::unix::fs::symlink(outside.path(), folder.path().join("link")).expect("link");
        let archive = Archive::open(folder.path()).expect("archive");
        assert_eq!(
            archive.answer(&target("https://bbc.com/")).err(),
            Some(Stop::failed("the archive's file \"link\" leaves the archive"))
        );
    }

    #[test]
    fn a_pipe_is_not_waited_for() {
        let folder = folder("{\"url\": \"https://bbc.com/\", \"status\": 200, \"file\": \"pipe\"}");
        make_pipe(&folder.path().join("pipe"));
        let archive = Archive::open(folder.path()).expect("archive");
        assert_eq!(
            archive.answer(&target("https://bbc.com/")).err(),
            Some(Stop::failed("the archive's file \"pipe\" cannot be read: it is no plain file"))
        );
        for open in [|path: &Path| Archive::open(path).err(), |path: &Path| Recorder::open(path).err()] {
            let index = folder.path().join(INDEX);
            fs::remove_file(&index).expect("index");
            make_pipe(&index);
            assert!(open(folder.path()).is_some(), "a pipe as the index");
        }
    }

    fn make_pipe(path: &Path) {
        let made = std::process::Command::new("mkfifo").arg(path).status().expect("mkfifo");
        assert!(made.success());
    }

    #[test]
    fn what_is_recorded_goes_through_no_link() {
        let outside = tempfile::NamedTempFile::new().expect("file");
        let folder = tempfile::tempdir().expect("folder");
        std::os::unix::fs::symlink(outside.path(), folder.path().join(INDEX)).expect("link");
        assert!(Recorder::open(folder.path()).is_err());
    }

    #[test]
    fn a_broken_index_names_the_line() {
        let folder = folder("{\"url\": \"https://bbc.com/\", \"status\": 200}\nnonsense\n");
        let error = Archive::open(folder.path()).expect_err("broken").to_string();
        assert!(error.contains("index.jsonl line 2: expected"), "{error}");
        assert!(Archive::open(Path::new("/nowhere")).is_err());
    }
}
