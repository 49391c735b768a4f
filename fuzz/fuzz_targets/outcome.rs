//! What comes out of the guest: the encoded outcome, and the bytes of an output stream.
//!
//! One input is read as both; as a stream, its first byte says where the tail begins.
#![no_main]

use guest_abi::outcome::{Outcome, is_plain};
use guest_abi::output_window::{Captured, PART_BYTES, STREAM_BYTES, Stream};
use hyperlight_bridge::RunReport;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let Ok(outcome) = Outcome::decode(input) {
        assert!(outcome.files.iter().all(|(path, _)| is_plain(path)));
        let held: usize = outcome.files.iter().map(|(path, content)| path.len() + content.len()).sum();
        assert!(held <= input.len());
        let again = outcome.encode();
        assert_eq!(Outcome::decode(&again).as_ref(), Ok(&outcome));
    }
    if let Some(numbers) = input.first_chunk::<24>() {
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|index| numbers[at + index]));
        capture(&Stream { written: number(0), head: number(8), tail: number(16) });
    }
    let Some((&cut, stream)) = input.split_first() else {
        return;
    };
    let (head, tail) = stream.split_at(stream.len().min(cut.into()));
    for left_out in [0, 1, u64::MAX - stream.len() as u64] {
        text_of(head, tail, stream.len() as u64 + left_out);
    }
    text_of(head, tail, 0);
});

/// Whatever a guest counts, its reader stays inside the stream's room.
fn capture(stream: &Stream) {
    let captured = stream.capture(|offset, bytes| {
        assert!(offset + bytes.len() as u64 <= STREAM_BYTES);
        Ok::<_, std::convert::Infallible>(())
    });
    let Ok(captured) = captured;
    assert!(captured.head.len() as u64 <= PART_BYTES && captured.tail.len() as u64 <= PART_BYTES);
    assert!(captured.since(stream.written / 2).len() as u64 <= STREAM_BYTES);
}

fn text_of(head: &[u8], tail: &[u8], written: u64) {
    let text = RunReport::text_of(&Captured { head: head.to_vec(), tail: tail.to_vec(), written });
    assert!(text.len() <= 3 * (head.len() + tail.len()) + 100);
}
