//! The guest's scratch memory, read and written from this process.
//!
//! Scratch is ordinary memory of this process, but Hyperlight 0.18 has no way to reach it from outside: writable mappings
//! of our own are refused. So it is found among this process's mappings, as the one that a new sandbox added, and
//! reached through `/proc/self/mem`: no `unsafe`, and an address that is no longer mapped is an error, not a crash. It is
//! found before the guest runs, because afterwards all that is read is the guest's word.
//!
//! Places are counted from the end, as Hyperlight counts its own words there.
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::BridgeError;

pub(crate) const PAGE: u64 = 4096;
/// Guest-physical address of the end of scratch (`SCRATCH_TOP_GPA` of hyperlight-common, and one).
pub(crate) const END_GPA: u64 = 0x10_0000_0000;
/// Hyperlight's page allocator word (`SCRATCH_TOP_ALLOCATOR_OFFSET`).
pub(crate) const ALLOCATOR: u64 = 0x10;
/// Four words that Hyperlight writes at every restore: generation, first table, next free page, size.
const BOOKKEEPING: u64 = 0x20;

/// No scratch is smaller (`SCRATCH_BYTES` of boot.rs).
const LEAST_BYTES: u64 = 64 << 20;
/// Held while a sandbox is built, so that only one mapping of the kind is added meanwhile.
static BUILDING: Mutex<()> = Mutex::new(());
/// Ends of the scratch of all sandboxes that live in this process.
static LIVE: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());
/// A fork may have copied a lock while another thread held it, and a mapping that is given back takes a moment to go.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where one sandbox's scratch ends in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScratchEnd(u64);

/// The scratch of one sandbox, known as such until this is dropped. To be dropped before the sandbox.
#[derive(Debug)]
pub(crate) struct OwnScratch {
    pub end: ScratchEnd,
}

impl Drop for OwnScratch {
    fn drop(&mut self) {
        live().remove(&self.end.0);
    }
}

fn live() -> MutexGuard<'static, BTreeSet<u64>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl OwnScratch {
    /// Calls `build`, and finds the scratch of the sandbox that it builds: the one mapping of its kind that is no other's.
    pub fn of_new<T, E: From<BridgeError>>(build: impl FnOnce() -> Result<T, E>) -> Result<(T, Self), E> {
        let begin = Instant::now();
        let _building = loop {
            match BUILDING.try_lock() {
                Ok(guard) => break Some(guard),
                Err(TryLockError::Poisoned(poisoned)) => break Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) if begin.elapsed() > PATIENCE => break None,
                Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_micros(100)),
            }
        };
        let built = build()?;
        let begin = Instant::now();
        loop {
            let found = unclaimed()?;
            if let [end] = found[..] {
                live().insert(end.0);
                return Ok((built, Self { end }));
            }
            // With more than one, those of sandboxes that are being dropped are still there.
            if found.is_empty() || begin.elapsed() > PATIENCE {
                let reason = format!("{} mappings of this process could be the guest's scratch memory", found.len());
                return Err(BridgeError::OutputUnreadable { reason }.into());
            }
            thread::sleep(Duration::from_micros(100));
        }
    }
}

/// Mappings that look like scratch and belong to no sandbox that is known.
fn unclaimed() -> Result<Vec<ScratchEnd>, BridgeError> {
    let maps = fs::read_to_string("/proc/self/maps")
        .map_err(|error| BridgeError::OutputUnreadable { reason: format!("/proc/self/maps: {error}") })?;
    let live = live();
    let mut found = Vec::new();
    let large = maps.lines().filter_map(writable).filter(|(begin, end)| end - begin >= LEAST_BYTES);
    for (begin, end) in large.filter(|(_, end)| !live.contains(end)) {
        // Hyperlight notes the size at the end when it makes a sandbox.
        if ScratchEnd(end).open(false)?.bookkeeping().is_ok_and(|noted| noted.bytes == end - begin) {
            found.push(ScratchEnd(end));
        }
    }
    Ok(found)
}

impl ScratchEnd {
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

/// Begin and end from a line of /proc/self/maps, if the mapping is readable and writable.
fn writable(line: &str) -> Option<(u64, u64)> {
    let (range, rest) = line.split_once(' ')?;
    let (begin, end) = range.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    if rest.starts_with("rw") { Some((number(begin)?, number(end)?)) } else { None }
}

/// Scratch, opened.
pub(crate) struct Scratch {
    memory: File,
    end: u64,
}

impl Scratch {
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
        assert_eq!(writable("7f00-7fff rw-p 00000000 00:00 0"), Some((0x7f00, 0x7fff)));
        assert_eq!(writable("7f00-7fff r--p 00000000 00:00 0"), None);
        assert_eq!(writable("nonsense"), None);
    }

    #[test]
    fn what_builds_nothing_has_no_scratch() {
        let nothing = OwnScratch::of_new(|| Ok::<_, BridgeError>(vec![0_u8; 64 << 20]));
        assert!(matches!(nothing, Err(BridgeError::OutputUnreadable { .. })));
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
