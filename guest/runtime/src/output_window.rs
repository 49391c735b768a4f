//! What a run prints, at a fixed place in scratch where the host finds it even when the run was killed.
//!
//! The window is below the pages that Hyperlight reserves at the top of scratch (guest/shim/layout.h). It begins with a
//! page of little-endian words: magic, run id, then for each stream the bytes written in all, the room of the head and the
//! room of the tail. Behind it each stream has its head (the first bytes, kept), then its tail (a ring of the last bytes);
//! behind both is the outcome (`outcome.rs`).
//! The host's reader is `crates/hyperlight_bridge/src/output_window.rs`.
use core::ptr;
use core::sync::atomic::{Ordering, compiler_fence};

use hyperlight_common::flatbuffer_wrappers::guest_error::ErrorCode;

const SCRATCH_END: usize = 0xffff_ffff_ffff_f000;
const PAGE: usize = 4096;
const RESERVED_PAGES: usize = 12;
const WINDOW_PAGES: usize = 1160;
const BASE: usize = SCRATCH_END - (RESERVED_PAGES + WINDOW_PAGES) * PAGE;

const MAGIC: u64 = u64::from_le_bytes(*b"wcpodout");
const STREAM_BYTES: usize = 256 * PAGE;
const PART_BYTES: usize = STREAM_BYTES / 2;

/// A run that writes this many times what is kept is ended.
const FLOOD: u64 = 1024;

/// How the host recognises that end.
const FLOODED: &core::ffi::CStr = c"output limit reached";

#[repr(C)]
struct Header {
    magic: u64,
    run_id: u64,
    streams: [StreamHeader; 2],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct StreamHeader {
    written: u64,
    head: u64,
    tail: u64,
}

/// Where the outcome begins, and the room it has.
const OUTCOME: usize = PAGE + 2 * STREAM_BYTES;
const OUTCOME_BYTES: usize = WINDOW_PAGES * PAGE - OUTCOME;

const _: () = assert!(OUTCOME_BYTES > (crate::outcome::MAX_FILE_BYTES as usize) + (512 << 10));

fn header() -> *mut Header {
    BASE as *mut Header
}

/// Empties the window for a run. Each stream keeps `bytes` in all, half of them its last.
pub fn open(run_id: u64, bytes: u64) {
    let part = (bytes / 2).clamp(1, PART_BYTES as u64);
    let stream = StreamHeader { written: 0, head: part, tail: part };
    // SAFETY: the window is mapped writable for the guest's lifetime and nothing else in the guest uses it.
    unsafe { ptr::write_volatile(header(), Header { magic: MAGIC, run_id, streams: [stream; 2] }) }
}

/// Adds `bytes` to standard output or standard error.
pub fn write(to_stderr: bool, mut bytes: &[u8]) {
    let index = usize::from(to_stderr);
    let base = BASE + PAGE + index * STREAM_BYTES;
    // SAFETY: as above; `head` and `tail` were clamped to the room there is when the window was opened.
    unsafe {
        let stream = &raw mut (*header()).streams[index];
        let StreamHeader { mut written, head, tail } = ptr::read_volatile(stream);
        if tail == 0 {
            return;
        }
        if written < head {
            let count = bytes.len().min((head - written) as usize);
            ptr::copy_nonoverlapping(bytes.as_ptr(), (base + written as usize) as *mut u8, count);
            written += count as u64;
            bytes = &bytes[count..];
        }
        // Only the last `tail` bytes of a long write can stay.
        let skipped = bytes.len().saturating_sub(tail as usize);
        written += skipped as u64;
        bytes = &bytes[skipped..];
        while !bytes.is_empty() {
            let at = ((written - head) % tail) as usize;
            let count = bytes.len().min(tail as usize - at);
            ptr::copy_nonoverlapping(bytes.as_ptr(), (base + PART_BYTES + at) as *mut u8, count);
            written += count as u64;
            bytes = &bytes[count..];
        }
        // The count comes last: a reader never sees more than was stored.
        compiler_fence(Ordering::Release);
        ptr::write_volatile(&raw mut (*stream).written, written);
        if written > (head + tail) * FLOOD {
            hyperlight_guest::exit::abort_with_code_and_message(&[ErrorCode::GuestError as u8], FLOODED.as_ptr());
        }
    }
}

/// Puts the outcome behind the streams. Returns its length in bytes.
pub fn store_outcome(record: &[u8]) -> u64 {
    let length = record.len().min(OUTCOME_BYTES);
    // SAFETY: the window is mapped writable for the guest's lifetime, and `length` is within it.
    unsafe { ptr::copy_nonoverlapping(record.as_ptr(), (BASE + OUTCOME) as *mut u8, length) };
    length as u64
}
