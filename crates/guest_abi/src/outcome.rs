//! How a run that came back ended: one little-endian record, which the guest leaves in the output window.
//!
//! | bytes | what |
//! |---|---|
//! | 1 | 1 when the instance trapped |
//! | 1 | 1 when memory growth was refused |
//! | 1 | 1 when a text follows |
//! | 4 | exit code, signed |
//! | 8 | peak size of the linear memory, bytes |
//! | 8 | bytes of the files below /output when they are too large to come along, else 0 |
//! | 4 + n | length and text: the value of a last expression, or the trap |
//! | … | files below /output: for each a block with its path and a block with its content |
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use crate::block::{self, Reader};
use crate::output_window::OUTCOME_BYTES;

pub use crate::block::Malformed;

/// Most bytes of files that come along, as [`file_bytes`] counts them.
pub const MAX_FILE_BYTES: u64 = 2 << 20;
/// Most bytes of the text; the rest is cut off.
pub const MAX_TEXT_BYTES: usize = 256 << 10;
/// Bytes in front of the text.
const HEAD_BYTES: u64 = 3 + 4 + 8 + 8;

const _: () = assert!(
    HEAD_BYTES + block::OVERHEAD as u64 + MAX_TEXT_BYTES as u64 + MAX_FILE_BYTES <= OUTCOME_BYTES,
    "the largest outcome fits into the window"
);

/// What is left below /output: path and content.
pub type Files = Vec<(String, Vec<u8>)>;

/// How a run ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The instance trapped; `text` says how.
    pub trapped: bool,
    /// Memory growth was refused during the run.
    pub memory_denied: bool,
    /// Exit code of the code.
    pub exit_code: i32,
    /// Largest size of the linear memory, in bytes.
    pub peak_memory: u64,
    /// Bytes of the files below /output when they were too large to come along, else 0.
    pub file_bytes_left_out: u64,
    /// Text of the value of a last expression, or of the trap.
    pub text: Option<String>,
    /// What is left below /output.
    pub files: Files,
}

/// What a file counts for in an outcome: its content, its path and their lengths.
#[must_use]
pub fn file_bytes(path: &str, content: u64) -> u64 {
    content.saturating_add((2 * block::OVERHEAD + path.len()) as u64)
}

impl Outcome {
    /// Encodes it. A text that is too long is cut off, on whole characters.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let text = self.text.as_deref().unwrap_or_default();
        let text = &text[..text.floor_char_boundary(MAX_TEXT_BYTES)];
        let mut bytes = Vec::with_capacity(HEAD_BYTES as usize + block::OVERHEAD + text.len());
        bytes.extend([self.trapped, self.memory_denied, self.text.is_some()].map(u8::from));
        bytes.extend(self.exit_code.to_le_bytes());
        bytes.extend(self.peak_memory.to_le_bytes());
        bytes.extend(self.file_bytes_left_out.to_le_bytes());
        block::put(&mut bytes, text.as_bytes());
        for (path, content) in &self.files {
            block::put(&mut bytes, path.as_bytes());
            block::put(&mut bytes, content);
        }
        bytes
    }

    /// Decodes `bytes`, all of them.
    ///
    /// # Errors
    /// [`Malformed`], also when the path of a file leads elsewhere.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(bytes);
        let (trapped, memory_denied, has_text) = (reader.flag()?, reader.flag()?, reader.flag()?);
        let exit_code = i32::from_le_bytes(reader.array()?);
        let peak_memory = u64::from_le_bytes(reader.array()?);
        let file_bytes_left_out = u64::from_le_bytes(reader.array()?);
        let text = reader.block()?;
        let text = has_text.then(|| String::from_utf8_lossy(text).into_owned());
        let mut files = Vec::new();
        while !reader.is_empty() {
            let path = core::str::from_utf8(reader.block()?).map_err(|_| Malformed)?;
            if !is_plain(path) {
                return Err(Malformed);
            }
            files.push((path.to_owned(), reader.block()?.to_vec()));
        }
        Ok(Self { trapped, memory_denied, exit_code, peak_memory, file_bytes_left_out, text, files })
    }
}

/// Whether a path is relative and stays below where it begins.
#[must_use]
pub fn is_plain(path: &str) -> bool {
    path.split('/').all(|name| !matches!(name, "" | "." | "..") && !name.contains('\0'))
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn outcome(path: &str) -> Outcome {
        Outcome {
            trapped: false,
            memory_denied: true,
            exit_code: -3,
            peak_memory: 4096,
            file_bytes_left_out: 7,
            text: Some("世".to_owned()),
            files: vec![(path.to_owned(), b"12345".to_vec()), ("b".to_owned(), Vec::new())],
        }
    }

    #[test]
    fn an_outcome_comes_back_as_it_was() {
        let trap = Outcome { trapped: true, text: Some(String::new()), ..Outcome::default() };
        for outcome in [outcome("a/b.txt"), trap, Outcome::default()] {
            assert_eq!(Outcome::decode(&outcome.encode()), Ok(outcome));
        }
    }

    #[test]
    fn the_largest_outcome_fits_into_the_window() {
        let paths = (0..4096).map(|number| alloc::format!("{number:0>200}"));
        let content = MAX_FILE_BYTES / 4096 - file_bytes(&"x".repeat(200), 0);
        let files: Files = paths.map(|path| (path, vec![0; content as usize])).collect();
        assert_eq!(files.iter().map(|(path, content)| file_bytes(path, content.len() as u64)).sum::<u64>(), 2 << 20);
        let largest = Outcome { text: Some("x".repeat(MAX_TEXT_BYTES + 1)), files, ..Outcome::default() };
        let encoded = largest.encode();
        assert!(encoded.len() as u64 <= OUTCOME_BYTES);
        assert_eq!(Outcome::decode(&encoded).unwrap().text.unwrap().len(), MAX_TEXT_BYTES);
    }

    #[test]
    fn a_text_is_cut_on_whole_characters() {
        let long = Outcome { text: Some("世".repeat(MAX_TEXT_BYTES)), ..Outcome::default() };
        let text = Outcome::decode(&long.encode()).unwrap().text.unwrap();
        assert_eq!((text.len(), text.trim_matches('世')), (MAX_TEXT_BYTES / 3 * 3, ""));
    }

    #[test]
    fn paths_that_lead_elsewhere_are_malformed() {
        for path in ["../x", "/etc/passwd", "a/../b", "", "a//b", "./a", "a\0b"] {
            assert_eq!(Outcome::decode(&outcome(path).encode()), Err(Malformed), "{path:?}");
        }
        assert!(is_plain("a/b.txt") && is_plain("..a") && is_plain("世"));
    }

    #[test]
    fn every_cut_and_every_changed_byte_is_an_error_or_an_outcome_never_a_panic() {
        let good = outcome("f").encode();
        for end in 0..good.len() {
            let _ = Outcome::decode(&good[..end]);
        }
        for at in 0..good.len() {
            for byte in [0, 1, 0x7f, 0xff] {
                let mut bytes = good.clone();
                bytes[at] = byte;
                let _ = Outcome::decode(&bytes);
            }
        }
        assert_eq!(Outcome::decode(&good[..good.len() - 1]), Err(Malformed));
        assert_eq!(Outcome::decode(&[]), Err(Malformed));
    }
}
