//! Looks into the window of a sandbox: what a run printed, also after it was killed, and its outcome.
//!
//! The guest writes its output to a window at a fixed place in its scratch memory (`guest_abi::output_window`), which this
//! process can read (`scratch`): a host call for every line would cost more than the run. Everything in it is the guest's
//! word.
use guest_abi::layout::OUTPUT_WINDOW;
use guest_abi::output_window::{self, Header, Stream};

use crate::error::BridgeError;
use crate::scratch::{Scratch, ScratchEnd};

pub use guest_abi::output_window::Captured;

/// The most that is kept of one stream, in bytes.
pub const MAX_STREAM_BYTES: u64 = output_window::STREAM_BYTES;

/// The window of one sandbox, opened for a few looks.
pub(crate) struct OutputWindow {
    scratch: Scratch,
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
        let [stdout, stderr] = match Header::from_words(self.scratch.words(OUTPUT_WINDOW.from_end())?) {
            Some(header) if header.run_id == run_id => header.streams,
            _ => return Ok(Default::default()),
        };
        Ok([self.capture(stdout, false)?, self.capture(stderr, true)?])
    }

    fn capture(&self, stream: Stream, to_stderr: bool) -> Result<Captured, BridgeError> {
        let begin = OUTPUT_WINDOW.from_end() - output_window::stream(to_stderr);
        stream.capture(|offset, bytes| self.scratch.read(begin - offset, bytes))
    }

    /// What a stream got after its first `seen` bytes, as far as it is still there, and how much it got in all.
    ///
    /// # Errors
    /// [`BridgeError::OutputUnreadable`].
    pub fn read_since(&self, run_id: u64, to_stderr: bool, seen: u64) -> Result<(Vec<u8>, u64), BridgeError> {
        let [stdout, stderr] = self.read(run_id)?;
        let stream = if to_stderr { stderr } else { stdout };
        Ok((stream.since(seen), stream.written))
    }

    /// The encoded outcome of a run that came back and said that it has `length` bytes.
    ///
    /// # Errors
    /// [`BridgeError::OutputUnreadable`].
    pub fn outcome(&self, length: u64) -> Result<Vec<u8>, BridgeError> {
        let mut record = vec![0; usize::try_from(length.min(output_window::OUTCOME_BYTES)).unwrap_or(0)];
        self.scratch.read(OUTPUT_WINDOW.from_end() - output_window::OUTCOME, &mut record)?;
        Ok(record)
    }

    /// Physical address of the next page that the guest will take: how many it took so far is a difference of two.
    ///
    /// # Errors
    /// [`BridgeError::OutputUnreadable`].
    pub fn next_page(&self) -> Result<u64, BridgeError> {
        Ok(self.scratch.bookkeeping()?.next_page)
    }
}
