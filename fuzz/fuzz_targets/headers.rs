//! A server's raw response: status line, headers, framing, redirect, encoding.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|response: &[u8]| {
    egress::fuzzing::headers(response);
});
