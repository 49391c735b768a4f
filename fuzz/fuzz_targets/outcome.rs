//! What comes out of the guest: the encoded outcome, and the bytes of an output stream.
//!
//! One input is read as both; as a stream, its first byte says where the tail begins.
#![no_main]

use hyperlight_bridge::RunReport;
use hyperlight_bridge::outcome::{Outcome, is_plain};
use hyperlight_bridge::output_window::Captured;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let Ok(outcome) = Outcome::decode(input) {
        assert!(outcome.files.iter().all(|(path, _)| is_plain(path)));
        let held: usize = outcome.files.iter().map(|(path, content)| path.len() + content.len()).sum();
        assert!(held <= input.len());
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

fn text_of(head: &[u8], tail: &[u8], written: u64) {
    let text = RunReport::text_of(&Captured { head: head.to_vec(), tail: tail.to_vec(), written });
    assert!(text.len() <= 3 * (head.len() + tail.len()) + 100);
}
