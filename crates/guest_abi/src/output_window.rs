//! What a run prints, at a fixed place in scratch ([`layout::OUTPUT_WINDOW`]) where the host finds it also when the run was
//! killed: the words of both sides, the guest's writer and the host's reader.
//!
//! The window begins with a page of words, the [`Header`]. Behind it each stream has its head (its first bytes, kept), then
//! its tail (a ring of the last bytes); behind both streams is the encoded outcome.
//!
//! The reader takes nothing for granted: every number in the header may be the word of a hostile guest.
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use crate::layout::{OUTPUT_WINDOW_PAGES, PAGE};

/// First word of a window that was opened.
pub const MAGIC: u64 = u64::from_le_bytes(*b"wcpodout");
/// Room of one stream, in bytes: the most that is kept of it.
pub const STREAM_BYTES: u64 = 256 * PAGE;
/// Room of a head, and of a tail.
pub const PART_BYTES: u64 = STREAM_BYTES / 2;
/// Where the outcome begins, from the begin of the window.
pub const OUTCOME: u64 = PAGE + 2 * STREAM_BYTES;
/// Room of the outcome.
pub const OUTCOME_BYTES: u64 = OUTPUT_WINDOW_PAGES * PAGE - OUTCOME;

const _: () = assert!(size_of::<Header>() as u64 <= PAGE);

/// A run that writes this many times what is kept is ended.
const FLOOD: u64 = 1024;

/// Where the head of a stream begins, from the begin of the window; its tail is [`PART_BYTES`] behind.
#[must_use]
pub const fn stream(to_stderr: bool) -> u64 {
    PAGE + to_stderr as u64 * STREAM_BYTES
}

/// The first words of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: u64,
    /// The run whose output this is.
    pub run_id: u64,
    /// Standard output and standard error.
    pub streams: [Stream; 2],
}

/// Words of one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Stream {
    /// Bytes that were written in all.
    pub written: u64,
    /// Room of the head that is used.
    pub head: u64,
    /// Room of the tail that is used.
    pub tail: u64,
}

impl Header {
    /// That of an empty window: each stream keeps `bytes` in all, half of them its last.
    #[must_use]
    pub fn new(run_id: u64, bytes: u64) -> Self {
        let part = (bytes / 2).clamp(1, PART_BYTES);
        Self { magic: MAGIC, run_id, streams: [Stream { written: 0, head: part, tail: part }; 2] }
    }

    /// Words as they lie in the window.
    #[must_use]
    pub fn from_words([magic, run_id, a, b, c, d, e, f]: [u64; 8]) -> Option<Self> {
        let stream = |written, head, tail| Stream { written, head, tail };
        (magic == MAGIC).then_some(Self { magic, run_id, streams: [stream(a, b, c), stream(d, e, f)] })
    }
}

impl Stream {
    /// The guest's writer: `store` puts bytes at an offset in the stream's room. What is written is counted at the end.
    pub fn append(&mut self, mut bytes: &[u8], mut store: impl FnMut(u64, &[u8])) {
        if self.tail == 0 {
            return;
        }
        if self.written < self.head {
            let (head, rest) = bytes.split_at(bytes.len().min((self.head - self.written) as usize));
            store(self.written, head);
            self.written += head.len() as u64;
            bytes = rest;
        }
        // Only the last bytes of a long write can stay.
        let skipped = bytes.len().saturating_sub(self.tail as usize);
        self.written += skipped as u64;
        bytes = &bytes[skipped..];
        while !bytes.is_empty() {
            let at = (self.written - self.head) % self.tail;
            let (piece, rest) = bytes.split_at(bytes.len().min((self.tail - at) as usize));
            store(PART_BYTES + at, piece);
            self.written += piece.len() as u64;
            bytes = rest;
        }
    }

    /// Whether it is so much more than is kept that the run is ended.
    #[must_use]
    pub fn is_flooded(&self) -> bool {
        self.written > self.head.saturating_add(self.tail).saturating_mul(FLOOD)
    }

    /// The host's reader: `load` copies from an offset in the stream's room.
    ///
    /// # Errors
    /// Those of `load`.
    pub fn capture<E>(&self, mut load: impl FnMut(u64, &mut [u8]) -> Result<(), E>) -> Result<Captured, E> {
        let (head, tail, written) = (self.head.min(PART_BYTES), self.tail.min(PART_BYTES), self.written);
        let kept = written.min(head);
        let mut captured = Captured { head: vec![0; kept as usize], tail: Vec::new(), written };
        load(0, &mut captured.head)?;
        let behind = written - kept;
        if behind > 0 && tail > 0 {
            captured.tail = vec![0; behind.min(tail) as usize];
            let Range { start: oldest, end } = if behind <= tail { 0..behind } else { behind % tail..tail };
            let (old, new) = captured.tail.split_at_mut((end - oldest) as usize);
            load(PART_BYTES + oldest, old)?;
            load(PART_BYTES, new)?;
        }
        Ok(captured)
    }
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

    /// The bytes from the stream's byte `seen` on, as far as they were kept.
    #[must_use]
    pub fn since(&self, seen: u64) -> Vec<u8> {
        let tail_begins = self.written.saturating_sub(self.tail.len() as u64);
        let from = |bytes: &[u8], begins: u64| {
            let skip = seen.saturating_sub(begins).min(bytes.len() as u64);
            bytes[skip as usize..].to_vec()
        };
        let mut bytes = from(&self.head, 0);
        bytes.append(&mut from(&self.tail, tail_begins));
        bytes
    }
}

#[cfg(test)]
mod tests {
    use core::convert::Infallible;

    use super::*;

    fn captured(stream: Stream, room: &[u8]) -> Captured {
        let Ok(captured) = stream.capture(|offset, bytes| {
            bytes.copy_from_slice(&room[offset as usize..offset as usize + bytes.len()]);
            Ok::<_, Infallible>(())
        });
        captured
    }

    #[test]
    fn what_was_written_is_read_as_head_and_tail() {
        for total in [0_u64, 1, 9, 10, 11, 19, 20, 21, 25, 30, 31, 99, 1000] {
            for piece in [1, 3, 10, 64, 1000] {
                let all: Vec<u8> = (0..total).map(|at| (at % 251) as u8).collect();
                let mut room = vec![0; STREAM_BYTES as usize];
                let mut stream = Header::new(1, 20).streams[0];
                for piece in all.chunks(piece) {
                    stream.append(piece, |offset, bytes| {
                        room[offset as usize..offset as usize + bytes.len()].copy_from_slice(bytes);
                    });
                }
                let found = captured(stream, &room);
                let head = all.len().min(10);
                assert_eq!(found.head, all[..head], "head of {total} in pieces of {piece}");
                let tail = (all.len() - head).min(10);
                assert_eq!(found.tail, all[all.len() - tail..], "tail of {total} in pieces of {piece}");
                assert_eq!((found.written, found.omitted()), (total, total.saturating_sub(20)));
            }
        }
    }

    #[test]
    fn a_window_that_was_not_opened_has_no_header() {
        let words = |header: Header| {
            let [a, b] = header.streams.map(|stream| [stream.written, stream.head, stream.tail]);
            [header.magic, header.run_id, a[0], a[1], a[2], b[0], b[1], b[2]]
        };
        let header = Header::new(7, 4096);
        assert_eq!(Header::from_words(words(header)), Some(header));
        assert_eq!(Header::from_words(words(Header { magic: 1, ..header })), None);
    }

    #[test]
    fn the_limits_of_a_stream() {
        for (bytes, part) in [(0, 1), (1, 1), (20, 10), (u64::MAX, PART_BYTES)] {
            let [stdout, stderr] = Header::new(1, bytes).streams;
            assert_eq!((stdout.head, stdout.tail, stderr), (part, part, stdout));
        }
        let written = |written| Stream { written, head: 10, tail: 10 };
        assert_eq!([20 * 1024, 20 * 1024 + 1].map(|at| written(at).is_flooded()), [false, true]);
    }

    #[test]
    fn numbers_of_a_hostile_guest_stay_inside_the_window() {
        let room = vec![0; STREAM_BYTES as usize];
        for (written, head, tail) in
            [(u64::MAX, u64::MAX, u64::MAX), (u64::MAX, 0, 0), (u64::MAX, 1, u64::MAX), (5, 0, 1)]
        {
            let found = captured(Stream { written, head, tail }, &room);
            assert!((found.head.len() + found.tail.len()) as u64 <= STREAM_BYTES);
        }
    }

    #[test]
    fn what_came_since_is_taken_from_head_and_tail() {
        let stream = Captured { head: b"abcd".to_vec(), tail: b"wxyz".to_vec(), written: 12 };
        assert_eq!(stream.since(0), b"abcdwxyz");
        assert_eq!(stream.since(3), b"dwxyz");
        assert_eq!(stream.since(6), b"wxyz");
        assert_eq!(stream.since(10), b"yz");
        assert_eq!(stream.since(12), b"");
        assert_eq!(stream.since(u64::MAX), b"");
    }
}
