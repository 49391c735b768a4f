//! The guest's scratch memory, read and written from this process.
//!
//! Scratch is ordinary memory of this process, but Hyperlight 0.18 has no way to reach it from outside: writable mappings
//! of our own are refused. So it is found among this process's mappings, as the one of its size that was not there before
//! the sandbox was built, and reached through `/proc/self/mem`: no `unsafe`, and an address that is no longer mapped is an
//! error, not a crash. One sandbox is built at a time. Others may be dropped meanwhile: theirs carry a mark by then.
//!
//! Places are counted from the end, as Hyperlight counts its own words there.
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;

use arc_swap::ArcSwapOption;
use guest_abi::layout::{GENERATION, OUTPUT_WINDOW, SCRATCH_END_GPA};

use crate::error::BridgeError;
use crate::fork_lock::{ForkLock, Held};

/// Held while a sandbox is built.
static BUILDING: ForkLock = ForkLock::new();
/// The scratch of all sandboxes that live in this process. Without a lock, which a fork could leave closed.
static LIVE: ArcSwapOption<Ends> = ArcSwapOption::const_empty();
/// Tries to build while other code of this process maps memory of the same size.
const TRIES: u32 = 8;

/// Written where the guest's output window begins, which is zero in new scratch, before a sandbox is dropped.
const RETIRED: u64 = u64::from_le_bytes(*b"retired\n");
const RETIRED_AT: u64 = OUTPUT_WINDOW.from_end();

type Ends = BTreeSet<ScratchEnd>;

/// Where one sandbox's scratch ends in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ScratchEnd(u64);

/// Builds a sandbox with `build`, and finds its scratch of `bytes` bytes.
pub(crate) fn of_new<T>(
    bytes: u64,
    mut build: impl FnMut() -> Result<T, BridgeError>,
) -> Result<(T, ScratchEnd), BridgeError> {
    let _building = BUILDING.hold();
    let mut found = 0;
    for _ in 0..TRIES {
        let before = foreign(mappings(bytes)?);
        let built = build()?;
        let new: Vec<_> = foreign(mappings(bytes)?).difference(&before).copied().collect();
        if let [end] = new[..] {
            change_live(|live| live.insert(end));
            return Ok((built, end));
        }
        found = new.len();
    }
    let reason = format!("{found} new mappings of this process have the size of the guest's scratch memory");
    Err(BridgeError::OutputUnreadable { reason })
}

/// To be called before a sandbox is dropped. What is returned is to be held meanwhile.
pub(crate) fn retire(end: ScratchEnd) -> Option<Held<'static>> {
    let marked = end.open().and_then(|scratch| scratch.write(RETIRED_AT, &RETIRED.to_le_bytes()));
    // Without a mark nothing may be built until it is gone.
    let held = marked.is_err().then(|| BUILDING.hold());
    change_live(|live| live.remove(&end));
    held
}

fn change_live(change: impl Fn(&mut Ends) -> bool) {
    LIVE.rcu(|live| {
        let mut live = live.as_deref().cloned().unwrap_or_default();
        change(&mut live);
        Some(live.into())
    });
}

/// Those that belong to no sandbox of ours. What is dropped at this moment is marked before it is no longer alive, so it is
/// known as one or the other.
fn foreign(mut mappings: Ends) -> Ends {
    let live = LIVE.load_full();
    mappings.retain(|end| live.as_deref().is_none_or(|live| !live.contains(end)) && !end.is_retired());
    mappings
}

/// Ends of the readable and writable mappings of a size.
fn mappings(bytes: u64) -> Result<Ends, BridgeError> {
    let maps = fs::read_to_string("/proc/self/maps")
        .map_err(|error| BridgeError::OutputUnreadable { reason: format!("/proc/self/maps: {error}") })?;
    let writable = maps.lines().filter_map(writable);
    Ok(writable.filter(|(begin, end)| end - begin == bytes).map(|(_, end)| ScratchEnd(end)).collect())
}

impl ScratchEnd {
    /// Opened for a few accesses. Not to be kept: after a fork it would still reach the parent's memory.
    pub fn open(self) -> Result<Scratch, BridgeError> {
        let memory = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/proc/self/mem")
            .map_err(|error| BridgeError::OutputUnreadable { reason: format!("/proc/self/mem: {error}") })?;
        Ok(Scratch { memory, end: self.0 })
    }

    /// Whether it belongs to a sandbox that is being dropped, or is gone already.
    fn is_retired(self) -> bool {
        let mark = self.open().and_then(|scratch| scratch.words(RETIRED_AT));
        mark.map_or(true, |[mark]| mark == RETIRED)
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
        let [generation, first_table, next_page, bytes] = self.words(GENERATION.from_end())?;
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
    SCRATCH_END_GPA.wrapping_sub(gpa)
}

/// Guest-physical address at which scratch of a size begins.
pub(crate) fn begin_of(bytes: u64) -> u64 {
    SCRATCH_END_GPA.wrapping_sub(bytes)
}

#[cfg(test)]
mod tests {
    use guest_abi::layout::PAGE;

    use super::*;

    #[test]
    fn only_writable_mappings_are_looked_at() {
        assert_eq!(writable("7f00-7fff rw-p 00000000 00:00 0"), Some((0x7f00, 0x7fff)));
        assert_eq!(writable("7f00-7fff r--p 00000000 00:00 0"), None);
        assert_eq!(writable("nonsense"), None);
    }

    /// Memory as a sandbox has it: between two pages that nobody may touch, so that it is a mapping of its own.
    struct Mapped(*mut libc::c_void, usize);

    impl Mapped {
        fn new(bytes: usize) -> Self {
            let (flags, page) = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, PAGE as usize);
            // SAFETY: new memory at an address that the kernel chooses; only pages inside it become writable.
            unsafe {
                let begin = libc::mmap(std::ptr::null_mut(), bytes + 2 * page, libc::PROT_NONE, flags, -1, 0);
                assert_ne!(begin, libc::MAP_FAILED);
                assert_eq!(libc::mprotect(begin.byte_add(page), bytes, libc::PROT_READ | libc::PROT_WRITE), 0);
                Self(begin, bytes + 2 * page)
            }
        }

        fn end(&self) -> ScratchEnd {
            ScratchEnd(self.0 as u64 + self.1 as u64 - PAGE)
        }
    }

    impl Drop for Mapped {
        fn drop(&mut self) {
            // SAFETY: what `new` mapped, of which nobody keeps an address.
            unsafe { libc::munmap(self.0, self.1) };
        }
    }

    #[test]
    fn the_one_that_was_not_there_before_is_found() {
        const BYTES: usize = (64 << 20) + (12 << 12);
        let alike = Mapped::new(BYTES);
        let (built, found) = of_new(BYTES as u64, || Ok(Mapped::new(BYTES))).unwrap();
        assert!(mappings(BYTES as u64).unwrap().contains(&alike.end()));
        assert_eq!(found, built.end());
    }

    #[test]
    fn what_is_dropped_meanwhile_is_not_taken_for_the_new_one() {
        const BYTES: usize = (64 << 20) + (14 << 12);
        let (old, end) = of_new(BYTES as u64, || Ok(Mapped::new(BYTES))).unwrap();
        let retired_during_the_build = || {
            assert!(retire(end).is_none());
            Ok(Mapped::new(BYTES))
        };
        let (built, found) = of_new(BYTES as u64, retired_during_the_build).unwrap();
        assert_eq!(found, built.end());
        drop(old);
        // Also where the new one takes its place.
        let mut last = Some(built);
        let in_its_place = || {
            retire(found);
            last = None;
            Ok(Mapped::new(BYTES))
        };
        let (built, found) = of_new(BYTES as u64, in_its_place).unwrap();
        assert_eq!(found, built.end());
    }

    #[test]
    fn what_builds_nothing_has_no_scratch_and_what_builds_two_is_not_guessed() {
        const BYTES: usize = (64 << 20) + (13 << 12);
        let nothing = of_new(BYTES as u64, || Ok(())).unwrap_err().to_string();
        assert!(nothing.contains("0 new mappings of this process"), "{nothing}");
        let two =
            of_new(BYTES as u64, || Ok((Mapped::new(BYTES), Mapped::new(BYTES)))).map(|_| ()).unwrap_err().to_string();
        assert!(two.contains("2 new mappings of this process"), "{two}");
    }

    #[test]
    fn what_is_not_mapped_is_an_error() {
        let scratch = ScratchEnd(4096).open().unwrap();
        assert!(scratch.read(8, &mut [0; 8]).is_err());
        assert!(scratch.write(8, &[0; 8]).is_err());
        assert!(scratch.bookkeeping().is_err());
    }

    #[test]
    fn places_are_counted_from_the_end() {
        let memory: Vec<u64> = (0..8).collect();
        let end = ScratchEnd(memory.as_ptr_range().end as u64);
        let words: [u64; 2] = end.open().unwrap().words(24).unwrap();
        assert_eq!(words, [5, 6]);
        assert_eq!(from_end(SCRATCH_END_GPA - 16), 16);
    }
}
