//! Any bytes as a page: every bound of the answer holds.
#![no_main]

use egress::Format;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u16, bool, &[u8])| {
    let (offset, source, bytes) = input;
    let format = if source { Format::Html } else { Format::Text };
    egress::fuzzing::html(bytes, "text/html", usize::from(offset), format);
    egress::fuzzing::html(bytes, "application/json", usize::from(offset), format);
});
