//! How a run that came back is told to the host: one little-endian record, decoded by
//! `crates/hyperlight_bridge/src/outcome.rs`.
//!
//! | bytes | what |
//! |---|---|
//! | 1 | 0: the code came to its end; 1: the instance trapped |
//! | 1 | 1 when memory growth was refused |
//! | 1 | 1 when a value follows |
//! | 4 | exit code, signed |
//! | 8 | peak size of the linear memory, bytes |
//! | 8 | bytes of the files below /output when they are too large to come along, else 0 |
//! | 4 + n | length and text: the value, or the trap |
//! | … | files below /output: for each, length and path, length and bytes |
use alloc::string::String;
use alloc::vec::Vec;

use crate::linear_memory;

/// What is left below /output: path and content.
pub type Files = Vec<(String, Vec<u8>)>;

/// Most bytes of files that come along.
pub const MAX_FILE_BYTES: u64 = 2 << 20;

/// Most bytes of a value or trap.
const MAX_TEXT_BYTES: usize = 256 << 10;

fn encode(trapped: bool, exit_code: i32, text: Option<&str>, files: Result<Files, u64>) -> Vec<u8> {
    let text_bytes = text.unwrap_or("").as_bytes();
    let text_bytes = &text_bytes[..text_bytes.len().min(MAX_TEXT_BYTES)];
    let (files, left_out) = files.map_or_else(|bytes| (Files::new(), bytes), |files| (files, 0));
    let mut record = Vec::with_capacity(27 + text_bytes.len());
    record.extend([u8::from(trapped), u8::from(linear_memory::was_denied()), u8::from(text.is_some())]);
    record.extend(exit_code.to_le_bytes());
    record.extend(linear_memory::peak().to_le_bytes());
    record.extend(left_out.to_le_bytes());
    record.extend((text_bytes.len() as u32).to_le_bytes());
    record.extend(text_bytes);
    for (path, content) in files {
        record.extend((path.len() as u32).to_le_bytes());
        record.extend(path.as_bytes());
        record.extend((content.len() as u32).to_le_bytes());
        record.extend(content);
    }
    record
}

/// The code came to its end, with `value` if its last statement was an expression, and the files or how large they are.
pub fn returned(exit_code: i32, value: Option<&str>, files: Result<Files, u64>) -> Vec<u8> {
    encode(false, exit_code, value, files)
}

/// The instance trapped.
pub fn trapped(reason: &str) -> Vec<u8> {
    encode(true, 1, Some(reason), Ok(Files::new()))
}
