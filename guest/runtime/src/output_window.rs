//! The guest's side of the output window: what a run prints, where the host finds it even when the run was killed.
use core::ptr;
use core::sync::atomic::{Ordering, compiler_fence};

use guest_abi::abort::Abort;
use guest_abi::layout::OUTPUT_WINDOW;
use guest_abi::output_window::{Header, OUTCOME, OUTCOME_BYTES, Stream, stream};

const BASE: usize = OUTPUT_WINDOW.gva() as usize;

fn header() -> *mut Header {
    BASE as *mut Header
}

/// Empties the window for a run. Each stream keeps `bytes` in all, half of them its last.
pub fn open(run_id: u64, bytes: u64) {
    // SAFETY: the window is mapped writable for the guest's lifetime and nothing else in the guest uses it.
    unsafe { ptr::write_volatile(header(), Header::new(run_id, bytes)) }
}

/// Adds `bytes` to standard output or standard error.
pub fn write(to_stderr: bool, bytes: &[u8]) {
    let room = BASE + stream(to_stderr) as usize;
    // SAFETY: as above.
    let (words, mut stream) = unsafe {
        let words: *mut Stream = &raw mut (*header()).streams[usize::from(to_stderr)];
        (words, ptr::read_volatile(words))
    };
    stream.append(bytes, |offset, piece| {
        // SAFETY: as above; the room of head and tail was clamped to what there is when the window was opened.
        unsafe { ptr::copy_nonoverlapping(piece.as_ptr(), (room + offset as usize) as *mut u8, piece.len()) }
    });
    // The count comes last: a reader never sees more than was stored.
    compiler_fence(Ordering::Release);
    // SAFETY: as above.
    unsafe { ptr::write_volatile(&raw mut (*words).written, stream.written) }
    if stream.is_flooded() {
        let text = c"output limit reached";
        // SAFETY: the text ends with a zero.
        unsafe { hyperlight_guest::exit::abort_with_code_and_message(&[Abort::OutputLimit.code()], text.as_ptr()) }
    }
}

/// Puts the outcome behind the streams. Returns its length in bytes.
pub fn store_outcome(record: &[u8]) -> u64 {
    let length = record.len().min(OUTCOME_BYTES as usize);
    // SAFETY: the window is mapped writable for the guest's lifetime, and `length` is within it.
    unsafe { ptr::copy_nonoverlapping(record.as_ptr(), (BASE + OUTCOME as usize) as *mut u8, length) };
    length as u64
}
