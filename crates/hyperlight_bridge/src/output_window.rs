//! Reads what a run printed, also after it was killed.
//!
//! The guest writes its output to a window at a fixed place in its scratch memory (`guest/runtime/src/output_window.rs`),
//! which this process can read (`scratch`): a host call for every line would cost more than the run. Everything in it is the
//! guest's word.
use crate::error::BridgeError;
use crate::scratch::{PAGE, Scratch, ScratchEnd};

const MAGIC: u64 = u64::from_le_bytes(*b"wcpodout");
/// Distance of the window's begin from the end of scratch.
pub(crate) const FROM_END: u64 = (12 + 1160) * PAGE;
const STREAM_BYTES: u64 = 256 * PAGE;
const PART_BYTES: u64 = STREAM_BYTES / 2;
const OUTCOME: u64 = PAGE + 2 * STREAM_BYTES;
const OUTCOME_BYTES: u64 = 1160 * PAGE - OUTCOME;

/// The most that is kept of one stream, in bytes.
pub const MAX_STREAM_BYTES: u64 = STREAM_BYTES;

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

/// The window of one sandbox, opened for a few looks.
pub(crate) struct OutputWindow {
    scratch: Scratch,
}

struct Header {
    run_id: u64,
    streams: [[u64; 3]; 2],
}

impl OutputWindow {
    /// Opens the window of the sandbox whose scratch ends there.
    ///
    /// # Errors
    /// [`BridgeError::OutputUnreadable`].
    pub fn open(end: ScratchEnd) -> Result<Self, BridgeError> {
        Ok(Self::of(end.open()?))
    }

    /// The window in scratch that was opened.
    pub fn of(scratch: Scratch) -> Self {
        Self { scratch }
    }

    /// What the run `run_id` wrote to standard output and to standard error. Empty when the window carries another run.
    ///
    /// # Errors
    /// [`BridgeError::OutputUnreadable`].
    pub fn read(&self, run_id: u64) -> Result<[Captured; 2], BridgeError> {
        let header = match self.header() {
            Some(header) if header.run_id == run_id => header,
            _ => return Ok(Default::default()),
        };
        let mut captured = [Captured::default(), Captured::default()];
        for (index, [written, head, tail]) in header.streams.into_iter().enumerate() {
            let begin = FROM_END - PAGE - index as u64 * STREAM_BYTES;
            captured[index] = capture(written, head, tail, |offset, bytes| self.scratch.read(begin - offset, bytes))?;
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
        self.scratch.read(FROM_END - OUTCOME, &mut record)?;
        Ok(record)
    }

    /// Physical address of the next page that the guest will take: how many it took so far is a difference of two.
    ///
    /// # Errors
    /// [`BridgeError::OutputUnreadable`].
    pub fn next_page(&self) -> Result<u64, BridgeError> {
        Ok(self.scratch.bookkeeping()?.next_page)
    }

    fn header(&self) -> Option<Header> {
        let [magic, run_id, a, b, c, d, e, f] = self.scratch.words(FROM_END).ok()?;
        (magic == MAGIC).then_some(Header { run_id, streams: [[a, b, c], [d, e, f]] })
    }
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
}
