//! Decodes what a run that came back tells: hostile bytes in the layout of `guest/runtime/src/outcome.rs`.

/// A decoded record.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// What is left below /output: path and content.
    pub files: Vec<(String, Vec<u8>)>,
}

/// The bytes are not an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the guest answered with a malformed outcome")]
pub struct Malformed;

impl Outcome {
    /// Decodes `bytes`, all of them.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(bytes);
        let (trapped, memory_denied, has_text) = (reader.flag()?, reader.flag()?, reader.flag()?);
        let exit_code = i32::from_le_bytes(reader.array()?);
        let peak_memory = u64::from_le_bytes(reader.array()?);
        let file_bytes_left_out = u64::from_le_bytes(reader.array()?);
        let text = reader.block()?;
        let text = has_text.then(|| String::from_utf8_lossy(text).into_owned());
        let mut files = Vec::new();
        while !reader.0.is_empty() {
            let path = reader.block()?;
            let path = std::str::from_utf8(path).map_err(|_| Malformed)?;
            if !is_plain(path) {
                return Err(Malformed);
            }
            let path = path.to_owned();
            files.push((path, reader.block()?.to_vec()));
        }
        Ok(Self { trapped, memory_denied, exit_code, peak_memory, file_bytes_left_out, text, files })
    }
}

/// Whether a path is relative and stays below where it begins.
#[must_use]
pub fn is_plain(path: &str) -> bool {
    path.split('/').all(|name| !matches!(name, "" | "." | "..") && !name.contains('\0'))
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (head, rest) = self.0.split_at_checked(count).ok_or(Malformed)?;
        self.0 = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.take(N)?.try_into().map_err(|_| Malformed)
    }

    fn flag(&mut self) -> Result<bool, Malformed> {
        match self.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(Malformed),
        }
    }

    fn block(&mut self) -> Result<&'a [u8], Malformed> {
        let length = u32::from_le_bytes(self.array()?);
        self.take(usize::try_from(length).map_err(|_| Malformed)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(text: &str, file: Option<(&str, &[u8])>) -> Vec<u8> {
        let mut bytes = vec![0, 1, 1];
        bytes.extend((-3i32).to_le_bytes());
        bytes.extend(4096u64.to_le_bytes());
        bytes.extend(0u64.to_le_bytes());
        bytes.extend((text.len() as u32).to_le_bytes());
        bytes.extend(text.bytes());
        if let Some((path, content)) = file {
            bytes.extend((path.len() as u32).to_le_bytes());
            bytes.extend(path.bytes());
            bytes.extend((content.len() as u32).to_le_bytes());
            bytes.extend(content);
        }
        bytes
    }

    #[test]
    fn a_record_is_decoded() {
        let outcome = Outcome::decode(&record("世", Some(("a/b.txt", b"x")))).unwrap();
        assert_eq!(outcome.exit_code, -3);
        assert_eq!(outcome.peak_memory, 4096);
        assert!(outcome.memory_denied && !outcome.trapped);
        assert_eq!(outcome.text.as_deref(), Some("世"));
        assert_eq!(outcome.files, [("a/b.txt".to_owned(), b"x".to_vec())]);
    }

    #[test]
    fn paths_that_lead_elsewhere_are_malformed() {
        for path in ["../x", "/etc/passwd", "a/../b", "", "a//b", "./a", "a\0b"] {
            assert_eq!(Outcome::decode(&record("v", Some((path, b"x")))), Err(Malformed), "{path:?}");
        }
        assert!(is_plain("a/b.txt") && is_plain("..a") && is_plain("世"));
    }

    #[test]
    fn every_cut_and_every_changed_byte_is_an_error_or_a_record_never_a_panic() {
        let good = record("value", Some(("f", b"12345")));
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
