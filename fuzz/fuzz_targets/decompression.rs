//! Wire bytes in every supported encoding: never more content than the bound, never more read.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, u16, &[u8])| {
    let (encoding, bound, wire) = input;
    let encoding = ["gzip", "deflate", "identity", "x-gzip"][usize::from(encoding % 4)];
    egress::fuzzing::decompress(wire, encoding, usize::from(bound));
});
