//! The file that a micro-VM boots: an ELF image that names, in two notes, the Hyperlight it was built with and the version
//! of the interface between this crate and `guest/runtime`.
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use guest_abi::interface;
use memchr::memmem;
use sha2::{Digest, Sha256};

use crate::error::BridgeError;

pub use guest_abi::interface::VERSION as INTERFACE_VERSION;

/// A guest image that was read and looked at.
pub struct GuestImage {
    path: PathBuf,
    bytes: Vec<u8>,
    digest: OnceLock<String>,
}

impl GuestImage {
    /// Reads the image at `path`.
    ///
    /// # Errors
    /// [`BridgeError::ImageUnreadable`], [`BridgeError::ImageInvalid`], [`BridgeError::ImageVersion`].
    pub fn read(path: &Path) -> Result<Self, BridgeError> {
        let bytes = fs::read(path).map_err(|source| BridgeError::ImageUnreadable { path: path.to_owned(), source })?;
        check(path, &bytes)?;
        Ok(Self { path: path.to_owned(), bytes, digest: OnceLock::new() })
    }

    /// Where it was read from.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Path and content, without a copy.
    #[must_use]
    pub fn into_parts(self) -> (PathBuf, Vec<u8>) {
        (self.path, self.bytes)
    }

    /// SHA-256 of its content, in lower-case hexadecimal.
    #[must_use]
    pub fn digest(&self) -> &str {
        self.digest.get_or_init(|| Sha256::digest(&self.bytes).iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

fn check(path: &Path, bytes: &[u8]) -> Result<(), BridgeError> {
    let invalid = |reason: &str| BridgeError::ImageInvalid { path: path.to_owned(), reason: reason.to_owned() };
    if bytes.is_empty() {
        return Err(invalid("the file is empty"));
    }
    if !bytes.starts_with(b"\x7fELF") {
        return Err(invalid("it is not an ELF file"));
    }
    let end = elf_end(bytes).ok_or_else(|| invalid("its ELF headers are cut off or malformed"))?;
    if end > bytes.len() as u64 {
        return Err(invalid(&format!("it is cut off: {} of {end} bytes are there", bytes.len())));
    }
    let at =
        find(bytes, interface::MARK.as_bytes()).ok_or_else(|| invalid("it does not name a wcpod guest interface"))?;
    let version: String = bytes[at + interface::MARK.len()..]
        .iter()
        .take(10)
        .take_while(|byte| byte.is_ascii_digit())
        .map(|&byte| char::from(byte))
        .collect();
    if version != INTERFACE_VERSION.to_string() {
        return Err(BridgeError::ImageVersion {
            path: path.to_owned(),
            reason: format!("it has guest interface {version:?}, this wcpod needs {INTERFACE_VERSION}"),
        });
    }
    Ok(())
}

/// End of the last segment or of the section headers, whichever is later.
fn elf_end(bytes: &[u8]) -> Option<u64> {
    let word = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?));
    let half = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?));
    let (segments, size, count) = (usize::try_from(word(32)?).ok()?, half(54)?, half(56)?);
    let sections = word(40)?.checked_add(u64::from(half(58)?) * u64::from(half(60)?))?;
    let mut end = sections;
    for index in 0..count {
        let header = segments.checked_add(usize::from(index) * usize::from(size))?;
        let segment = word(header.checked_add(8)?)?.checked_add(word(header.checked_add(32)?)?)?;
        end = end.max(segment);
    }
    (count > 0).then_some(end)
}

/// Where `pattern` stands with a digit behind it.
fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    memmem::find_iter(bytes, pattern).find(|at| bytes.get(at + pattern.len()).is_some_and(u8::is_ascii_digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(bytes: &[u8]) -> String {
        check(Path::new("guest"), bytes).map_or_else(|error| error.to_string(), |()| "ok".to_owned())
    }

    fn image(version: &str) -> Vec<u8> {
        let mut bytes = b"\x7fELF".to_vec();
        bytes.resize(64, 0);
        bytes[32] = 64; // program headers follow the file header
        bytes[54] = 56;
        bytes[56] = 1;
        let mut segment = vec![0; 56];
        let note = format!("{}{version}\0", interface::MARK);
        segment[8] = 120;
        segment[32] = note.len() as u8;
        bytes.extend(segment);
        bytes.extend(note.bytes());
        bytes
    }

    #[test]
    fn a_good_image_passes() {
        assert_eq!(checked(&image(&INTERFACE_VERSION.to_string())), "ok");
    }

    #[test]
    fn what_is_wrong_is_told() {
        assert!(checked(b"").contains("the file is empty"));
        assert!(checked(b"#!/bin/sh").contains("it is not an ELF file"));
        assert!(checked(b"\x7fELF").contains("cut off or malformed"));
        let whole = image(&INTERFACE_VERSION.to_string());
        assert!(checked(&whole[..whole.len() - 2]).contains("it is cut off"));
        let other = format!("it has guest interface \"0\", this wcpod needs {INTERFACE_VERSION}");
        assert!(checked(&image("0")).contains(&other));
    }

    #[test]
    fn headers_that_lie_do_not_panic() {
        let good = image(&INTERFACE_VERSION.to_string());
        for at in 32..64 {
            let mut bytes = good.clone();
            bytes[at] = 0xff;
            let _ = check(Path::new("guest"), &bytes);
        }
    }
}
