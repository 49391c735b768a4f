//! Bytes and a Content-Type to text: valid UTF-8 stays what it is, whatever the label says.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &[u8])| {
    let (content_type, bytes) = input;
    egress::fuzzing::charset(bytes, content_type);
    egress::fuzzing::charset(bytes, "text/html");
});
