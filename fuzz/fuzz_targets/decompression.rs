//! Wire bytes in every supported encoding: never more content than the bound, never more read.
//!
//! The first byte of an input chooses the encoding, the next two are the bound; the rest is the wire.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&[encoding, low, high], wire)) = input.split_first_chunk() else {
        return;
    };
    let encoding = ["gzip", "deflate", "identity", "x-gzip"][usize::from(encoding % 4)];
    egress::fuzzing::decompress(wire, encoding, usize::from(u16::from_le_bytes([low, high])));
});
