//! What comes out of the guest: the encoded outcome, and the bytes of an output stream.
#![no_main]

use hyperlight_bridge::RunReport;
use hyperlight_bridge::outcome::{Outcome, is_plain};
use hyperlight_bridge::output_window::Captured;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&[u8], &[u8], &[u8], u64)| {
    let (record, head, tail, written) = input;
    if let Ok(outcome) = Outcome::decode(record) {
        assert!(outcome.files.iter().all(|(path, _)| is_plain(path)));
        let held: usize = outcome.files.iter().map(|(path, content)| path.len() + content.len()).sum();
        assert!(held <= record.len());
    }
    let stream = Captured { head: head.to_vec(), tail: tail.to_vec(), written };
    let text = RunReport::text_of(&stream);
    assert!(text.len() <= 3 * (head.len() + tail.len()) + 100);
});
