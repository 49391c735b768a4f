//! The guest's scratch memory, read and written from this process.
//!
//! Scratch is ordinary memory of this process, but Hyperlight 0.18 has no way to reach it from outside: writable mappings
//! of our own are refused. So its end is found once among this process's mappings, and reached through `/proc/self/mem`: no
//! `unsafe`, and an address that is no longer mapped is an error, not a crash. What is read is the guest's word.
//!
//! Places are counted from the end, as Hyperlight counts its own words there.
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;

use crate::error::BridgeError;

pub(crate) const PAGE: u64 = 4096;
/// Guest-physical address of the end of scratch (`SCRATCH_TOP_GPA` of hyperlight-common, and one).
pub(crate) const END_GPA: u64 = 0x10_0000_0000;
/// Hyperlight's page allocator word (`SCRATCH_TOP_ALLOCATOR_OFFSET`).
pub(crate) const ALLOCATOR: u64 = 0x10;
/// Four words that Hyperlight writes at every restore: generation, first table, next free page, size.
const BOOKKEEPING: u64 = 0x20;

/// Where one sandbox's scratch ends in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScratchEnd(u64);

impl ScratchEnd {
    /// Ends of all mappings that could be some sandbox's scratch.
    pub fn candidates() -> Result<Vec<Self>, BridgeError> {
        let maps = fs::read_to_string("/proc/self/maps")
            .map_err(|error| BridgeError::OutputUnreadable { reason: format!("/proc/self/maps: {error}") })?;
        Ok(maps.lines().filter_map(writable_end).map(Self).collect())
    }

    /// Opened for a few accesses. Not to be kept: after a fork it would still reach the parent's memory.
    pub fn open(self, write: bool) -> Result<Scratch, BridgeError> {
        let memory = OpenOptions::new()
            .read(true)
            .write(write)
            .open("/proc/self/mem")
            .map_err(|error| BridgeError::OutputUnreadable { reason: format!("/proc/self/mem: {error}") })?;
        Ok(Scratch { memory, end: self.0 })
    }
}

/// End of a mapping that is readable and writable, from a line of /proc/self/maps.
fn writable_end(line: &str) -> Option<u64> {
    let (range, rest) = line.split_once(' ')?;
    let (_, end) = range.split_once('-')?;
    rest.starts_with("rw").then(|| u64::from_str_radix(end, 16).ok()).flatten()
}

/// Scratch, opened.
pub(crate) struct Scratch {
    memory: File,
    end: u64,
}

impl Scratch {
    /// The same file, for scratch that ends elsewhere.
    pub fn move_to(&mut self, end: ScratchEnd) {
        self.end = end.0;
    }

    /// Fills `bytes` with what lies `from_end` bytes before the end.
    pub fn read(&self, from_end: u64, bytes: &mut [u8]) -> Result<(), BridgeError> {
        self.memory.read_exact_at(bytes, self.end.wrapping_sub(from_end)).map_err(|error| {
            BridgeError::OutputUnreadable { reason: format!("{error}, {from_end} bytes before the end of scratch") }
        })
    }

    /// Writes `bytes` to the place that is `from_end` bytes before the end. Only while the guest does not run.
    pub fn write(&self, from_end: u64, bytes: &[u8]) -> Result<(), BridgeError> {
        self.memory.write_all_at(bytes, self.end.wrapping_sub(from_end)).map_err(|error| BridgeError::RestoreFailed {
            reason: format!("{error}, {from_end} bytes before the end of scratch"),
        })
    }

    /// The little-endian words that begin `from_end` bytes before the end.
    pub fn words<const COUNT: usize>(&self, from_end: u64) -> Result<[u64; COUNT], BridgeError> {
        let mut bytes = [[0; 8]; COUNT];
        self.read(from_end, bytes.as_flattened_mut())?;
        Ok(bytes.map(u64::from_le_bytes))
    }

    /// What Hyperlight noted at the last restore.
    pub fn bookkeeping(&self) -> Result<Bookkeeping, BridgeError> {
        let [generation, first_table, next_page, bytes] = self.words(BOOKKEEPING)?;
        Ok(Bookkeeping { generation, first_table, next_page, bytes })
    }
}

/// Hyperlight's notes at the end of scratch; addresses are guest-physical.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bookkeeping {
    generation: u64,
    /// The first of the page tables, which lie side by side up to the first free page.
    pub first_table: u64,
    /// The next page that the guest will take.
    pub next_page: u64,
    /// Size of scratch.
    pub bytes: u64,
}

/// How far a guest-physical address of scratch is from the end.
pub(crate) fn from_end(gpa: u64) -> u64 {
    END_GPA.wrapping_sub(gpa)
}

/// Guest-physical address at which scratch of a size begins.
pub(crate) fn begin_of(bytes: u64) -> u64 {
    END_GPA.wrapping_sub(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_writable_mappings_are_looked_at() {
        assert_eq!(writable_end("7f00-7fff rw-p 00000000 00:00 0"), Some(0x7fff));
        assert_eq!(writable_end("7f00-7fff r--p 00000000 00:00 0"), None);
        assert_eq!(writable_end("nonsense"), None);
    }

    #[test]
    fn what_is_not_mapped_is_an_error() {
        let scratch = ScratchEnd(4096).open(true).unwrap();
        assert!(scratch.read(8, &mut [0; 8]).is_err());
        assert!(scratch.write(8, &[0; 8]).is_err());
        assert!(scratch.bookkeeping().is_err());
    }

    #[test]
    fn places_are_counted_from_the_end() {
        let memory: Vec<u64> = (0..8).collect();
        let end = ScratchEnd(memory.as_ptr_range().end as u64);
        let words: [u64; 2] = end.open(false).unwrap().words(24).unwrap();
        assert_eq!(words, [5, 6]);
        assert_eq!(from_end(END_GPA - 16), 16);
    }
}
