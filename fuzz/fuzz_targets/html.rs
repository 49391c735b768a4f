//! Any text as a page: every bound of the answer holds, and it can be read to its end.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|page: &[u8]| {
    egress::fuzzing::html(&String::from_utf8_lossy(page));
});
