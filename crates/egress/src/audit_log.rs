//! The operator's file of fetches: one JSON line for each.
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::audit::AuditRecord;
use crate::plain_file;

/// Appends whole lines, from any thread.
#[derive(Debug)]
pub struct AuditLog {
    path: PathBuf,
    writing: Mutex<()>,
}

/// A line could not be written.
#[derive(Debug, thiserror::Error)]
#[error("the audit file {path} could not be written: {source}")]
pub struct AuditLogError {
    path: PathBuf,
    source: io::Error,
}

impl AuditLog {
    /// Makes the file, and the folders above it, unless it is there.
    ///
    /// # Errors
    /// [`AuditLogError`].
    pub fn open(path: &Path) -> Result<Self, AuditLogError> {
        let log = Self { path: path.to_owned(), writing: Mutex::default() };
        let made = path.parent().map_or(Ok(()), fs::create_dir_all);
        made.and_then(|()| log.write(b"")).map_err(|source| log.failed(source))?;
        Ok(log)
    }

    /// Adds a line.
    ///
    /// # Errors
    /// [`AuditLogError`].
    pub fn append(&self, record: &AuditRecord) -> Result<(), AuditLogError> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.write(line(record).as_bytes()).map_err(|source| self.failed(source))
    }

    fn write(&self, line: &[u8]) -> io::Result<()> {
        plain_file::append(&self.path)?.write_all(line)
    }

    fn failed(&self, source: io::Error) -> AuditLogError {
        AuditLogError { path: self.path.clone(), source }
    }
}

/// One line, for whoever splits lines: also the characters that only some readers take for the end of one, and those that
/// turn text around, are escaped.
fn line(record: &AuditRecord) -> String {
    let json = serde_json::to_string(record).unwrap_or_else(|error| format!("{{\"error\":{:?}}}", error.to_string()));
    let mut line = String::with_capacity(json.len() + 1);
    for character in json.chars() {
        if is_deceptive(character) {
            let code = u32::from(character);
            line.push_str(&format!("\\u{code:04x}"));
        } else {
            line.push(character);
        }
    }
    line.push('\n');
    line
}

/// Controls, separators of lines and paragraphs, and characters that are not seen or change the direction of text.
fn is_deceptive(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn each_record_is_one_line_for_every_reader() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/audit.jsonl");
        let log = AuditLog::open(&path).unwrap();
        let title = "世界\u{2028}杯\u{2029}a\u{202e}b\u{200b}c\u{85}d";
        log.append(&AuditRecord { title: Some(title.into()), ..AuditRecord::started("https://x/\u{2028}") }).unwrap();
        log.append(&AuditRecord::started("https://y/")).unwrap();
        let text = fs::read_to_string(path).unwrap();
        assert_eq!(text.lines().count(), 2);
        assert!(text.contains(r#""title":"世界\u2028杯\u2029a\u202eb\u200bc\u0085d""#), "{text}");
        let read: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        assert_eq!(read["title"], title);
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = AuditLog::open(folder.path()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("the audit file {} could not be written: ", folder.path().display())));
    }

    #[test]
    fn no_link_is_followed_and_no_pipe_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let (link, pipe, precious) = (folder.path().join("link"), folder.path().join("pipe"), folder.path().join("x"));
        fs::write(&precious, "mine").unwrap();
        std::os::unix::fs::symlink(&precious, &link).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for (path, reason) in [(&link, "it is a link"), (&pipe, "it is no plain file")] {
            let error = AuditLog::open(path).unwrap_err().to_string();
            assert_eq!(error, format!("the audit file {} could not be written: {reason}", path.display()));
        }
        assert_eq!(fs::read_to_string(&precious).unwrap(), "mine");
    }
}
