//! Bytes and a Content-Type to text: valid UTF-8 stays what it is, whatever the label says.
//!
//! The input is a file that can be written by hand: the header on the first line, then the page.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let end = input.iter().position(|&byte| byte == b'\n').unwrap_or(input.len());
    let (header, page) = input.split_at(end);
    let content_type = String::from_utf8_lossy(header);
    egress::fuzzing::charset(page.get(1..).unwrap_or_default(), &content_type);
});
