//! Reads what a run printed, also after it was killed.
//!
//! The guest writes its output to a window at a fixed place in its scratch memory (`guest/runtime/src/output_window.rs`).
//! Scratch is ordinary memory of this process, but Hyperlight 0.18 has no way to read it from outside: writable mappings of
//! our own are refused, and a host call for every line would cost more than the run. So the window is found once, by a
//! magic number and a random run id, among this process's own mappings, and read through `/proc/self/mem`: no `unsafe`, and
//! an address that is no longer mapped is an error, not a crash. Everything in the window is the guest's word.
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use crate::error::BridgeError;

const MAGIC: u64 = u64::from_le_bytes(*b"wcpodout");
const PAGE: u64 = 4096;
/// Distance of the window's begin from the end of scratch.
const FROM_END: u64 = (12 + 1160) * PAGE;
/// Distance of Hyperlight's page allocator word from the end of scratch (`SCRATCH_TOP_ALLOCATOR_OFFSET`).
const ALLOCATOR_FROM_END: u64 = 0x10;
const STREAM_BYTES: u64 = 256 * PAGE;
const PART_BYTES: u64 = STREAM_BYTES / 2;
const OUTCOME: u64 = PAGE + 2 * STREAM_BYTES;
const OUTCOME_BYTES: u64 = 1160 * PAGE - OUTCOME;
const HEADER_BYTES: usize = 64;

/// The most that is kept of one stream, in bytes.
pub const MAX_STREAM_BYTES: u64 = STREAM_BYTES;

/// Where the window of one sandbox is in this process.
#[derive(Debug, Clone, Copy)]
pub struct OutputWindow {
    address: u64,
}

/// What a run wrote to one stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// The first bytes.
    pub head: Vec<u8>,
    /// The last bytes; empty when `head` is all there was.
    pub tail: Vec<u8>,
    /// Bytes that were written in all.
    pub written: u64,
}

impl Captured {
    /// Bytes between head and tail that were not kept.
    #[must_use]
    pub fn omitted(&self) -> u64 {
        self.written.saturating_sub((self.head.len() + self.tail.len()) as u64)
    }
}

struct Header {
    run_id: u64,
    streams: [[u64; 3]; 2],
}

impl OutputWindow {
    /// Finds the window that carries `run_id`.
    ///
    /// # Errors
    /// [`BridgeError::OutputUnreadable`].
    pub fn find(run_id: u64) -> Result<Self, BridgeError> {
        let unreadable = |reason: String| BridgeError::OutputUnreadable { reason };
        let maps = fs::read_to_string("/proc/self/maps").map_err(|error| unreadable(error.to_string()))?;
        let memory = open_memory()?;
        maps.lines()
            .filter_map(writable_end)
            .filter_map(|end| end.checked_sub(FROM_END))
            .map(|address| Self { address })
            .find(|window| window.header(&memory).is_some_and(|header| header.run_id == run_id))
            .ok_or_else(|| unreadable("no mapping of this process carries the guest's mark".into()))
    }

    /// What the run `run_id` wrote to standard output and to standard error. Empty when the window carries another run.
    ///
    /// # Errors
    /// [`BridgeError::OutputUnreadable`].
    pub fn read(&self, run_id: u64) -> Result<[Captured; 2], BridgeError> {
        let memory = open_memory()?;
        let header = match self.header(&memory) {
            Some(header) if header.run_id == run_id => header,
            _ => return Ok(Default::default()),
        };
        let mut captured = [Captured::default(), Captured::default()];
        for (index, [written, head, tail]) in header.streams.into_iter().enumerate() {
            let base = self.address + PAGE + index as u64 * STREAM_BYTES;
            captured[index] = capture(written, head, tail, |offset, bytes| {
                memory
                    .read_exact_at(bytes, base + offset)
                    .map_err(|error| BridgeError::OutputUnreadable { reason: format!("{error} at the guest's output") })
            })?;
        }
        Ok(captured)
    }

    /// What a stream got after its first `seen` bytes, as far as it is still there, and how much it got in all.
    ///
    /// # Errors
    /// [`BridgeError::OutputUnreadable`].
    pub fn read_since(&self, run_id: u64, to_stderr: bool, seen: u64) -> Result<(Vec<u8>, u64), BridgeError> {
        let [stdout, stderr] = self.read(run_id)?;
        let stream = if to_stderr { stderr } else { stdout };
        Ok((since(&stream, seen), stream.written))
    }

    /// The encoded outcome of a run that came back and said that it has `length` bytes.
    ///
    /// # Errors
    /// [`BridgeError::OutputUnreadable`].
    pub fn outcome(&self, length: u64) -> Result<Vec<u8>, BridgeError> {
        let mut record = vec![0; usize::try_from(length.min(OUTCOME_BYTES)).unwrap_or(0)];
        open_memory()?
            .read_exact_at(&mut record, self.address + OUTCOME)
            .map_err(|error| BridgeError::OutputUnreadable { reason: error.to_string() })?;
        Ok(record)
    }

    /// Physical address of the next page that the guest will take: how many it took so far is a difference of two.
    ///
    /// # Errors
    /// [`BridgeError::OutputUnreadable`].
    pub fn next_page(&self) -> Result<u64, BridgeError> {
        let mut word = [0; 8];
        open_memory()?
            .read_exact_at(&mut word, self.address + FROM_END - ALLOCATOR_FROM_END)
            .map_err(|error| BridgeError::OutputUnreadable { reason: error.to_string() })?;
        Ok(u64::from_le_bytes(word))
    }

    fn header(&self, memory: &File) -> Option<Header> {
        let mut bytes = [0; HEADER_BYTES];
        memory.read_exact_at(&mut bytes, self.address).ok()?;
        let words: Vec<u64> =
            bytes.chunks_exact(8).filter_map(|word| Some(u64::from_le_bytes(word.try_into().ok()?))).collect();
        let [magic, run_id, a, b, c, d, e, f] = words.try_into().ok()?;
        (magic == MAGIC).then_some(Header { run_id, streams: [[a, b, c], [d, e, f]] })
    }
}

fn open_memory() -> Result<File, BridgeError> {
    File::open("/proc/self/mem")
        .map_err(|error| BridgeError::OutputUnreadable { reason: format!("/proc/self/mem: {error}") })
}

/// End of a mapping that is readable and writable, from a line of /proc/self/maps.
fn writable_end(line: &str) -> Option<u64> {
    let (range, rest) = line.split_once(' ')?;
    let (_, end) = range.split_once('-')?;
    rest.starts_with("rw").then(|| u64::from_str_radix(end, 16).ok()).flatten()
}

/// The bytes of a stream from `seen` on: of its head, its tail, or both.
fn since(stream: &Captured, seen: u64) -> Vec<u8> {
    let tail_begins = stream.written.saturating_sub(stream.tail.len() as u64);
    let from = |bytes: &[u8], begins: u64| {
        let skip = seen.saturating_sub(begins).min(bytes.len() as u64);
        bytes[skip as usize..].to_vec()
    };
    let mut bytes = from(&stream.head, 0);
    bytes.append(&mut from(&stream.tail, tail_begins));
    bytes
}

/// Puts together what is kept of a stream. `written`, `head` and `tail` are the guest's numbers; `read` copies from an
/// offset in the stream's part of the window.
fn capture(
    written: u64,
    head: u64,
    tail: u64,
    mut read: impl FnMut(u64, &mut [u8]) -> Result<(), BridgeError>,
) -> Result<Captured, BridgeError> {
    let (head, tail) = (head.min(PART_BYTES), tail.min(PART_BYTES));
    let kept = written.min(head);
    let mut captured = Captured { head: vec![0; kept as usize], tail: Vec::new(), written };
    read(0, &mut captured.head)?;
    let behind = written - kept;
    if behind > 0 && tail > 0 {
        captured.tail = vec![0; behind.min(tail) as usize];
        if behind <= tail {
            read(PART_BYTES, &mut captured.tail)?;
        } else {
            // The ring is full: its oldest byte is where the next one would go.
            let next = behind % tail;
            let (old, new) = captured.tail.split_at_mut((tail - next) as usize);
            read(PART_BYTES + next, old)?;
            read(PART_BYTES, new)?;
        }
    }
    Ok(captured)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The guest's writer, as in guest/runtime/src/output_window.rs.
    fn written(total: u64, head: u64, tail: u64) -> Vec<u8> {
        let mut window = vec![0; STREAM_BYTES as usize];
        for at in 0..total {
            let to = if at < head { at } else { PART_BYTES + (at - head) % tail };
            window[to as usize] = (at % 251) as u8;
        }
        window
    }

    fn captured(window: &[u8], total: u64, head: u64, tail: u64) -> Captured {
        capture(total, head, tail, |offset, bytes| {
            let offset = offset as usize;
            bytes.copy_from_slice(&window[offset..offset + bytes.len()]);
            Ok(())
        })
        .unwrap()
    }

    #[test]
    fn head_and_tail_are_the_first_and_the_last_bytes() {
        for total in [0, 1, 9, 10, 11, 19, 20, 21, 25, 30, 31, 99, 1000] {
            let all: Vec<u8> = (0..total).map(|at| (at % 251) as u8).collect();
            let found = captured(&written(total, 10, 10), total, 10, 10);
            let head = all.len().min(10);
            assert_eq!(found.head, all[..head], "head of {total}");
            let tail = (all.len() - head).min(10);
            assert_eq!(found.tail, all[all.len() - tail..], "tail of {total}");
            assert_eq!(found.omitted(), total.saturating_sub(20));
        }
    }

    #[test]
    fn numbers_of_a_hostile_guest_stay_inside_the_window() {
        let window = vec![0; STREAM_BYTES as usize];
        for (total, head, tail) in
            [(u64::MAX, u64::MAX, u64::MAX), (u64::MAX, 0, 0), (u64::MAX, 1, u64::MAX), (5, 0, 1)]
        {
            let found = captured(&window, total, head, tail);
            assert!((found.head.len() + found.tail.len()) as u64 <= STREAM_BYTES);
        }
    }

    #[test]
    fn what_came_since_is_taken_from_head_and_tail() {
        let stream = Captured { head: b"abcd".to_vec(), tail: b"wxyz".to_vec(), written: 12 };
        assert_eq!(since(&stream, 0), b"abcdwxyz");
        assert_eq!(since(&stream, 3), b"dwxyz");
        assert_eq!(since(&stream, 6), b"wxyz");
        assert_eq!(since(&stream, 10), b"yz");
        assert_eq!(since(&stream, 12), b"");
        assert_eq!(since(&stream, u64::MAX), b"");
    }

    #[test]
    fn only_writable_mappings_are_looked_at() {
        assert_eq!(writable_end("7f00-7fff rw-p 00000000 00:00 0"), Some(0x7fff));
        assert_eq!(writable_end("7f00-7fff r--p 00000000 00:00 0"), None);
        assert_eq!(writable_end("nonsense"), None);
    }

    #[test]
    fn a_window_that_is_not_there_is_an_error() {
        assert!(matches!(OutputWindow::find(0x1234_5678_9abc_def0), Err(BridgeError::OutputUnreadable { .. })));
    }
}
