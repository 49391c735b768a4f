//! Follows what a run prints while it runs: text goes out in whole characters, soon after it was printed.
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::output_window::OutputWindow;
use crate::run::HostServices;
use crate::scratch::ScratchEnd;

/// Between two looks at the window.
const INTERVAL: Duration = Duration::from_millis(20);

/// One stream's place.
#[derive(Default)]
struct Place {
    /// Bytes that were taken over.
    seen: u64,
    /// Begin of a character whose end has not come yet.
    pending: Vec<u8>,
}

impl Place {
    /// The text of pending and new bytes; at the `end` also of what is no whole character.
    fn text(&mut self, mut bytes: Vec<u8>, end: bool) -> String {
        let mut all = std::mem::take(&mut self.pending);
        all.append(&mut bytes);
        if !end
            && let Err(error) = std::str::from_utf8(&all)
            && error.error_len().is_none()
        {
            self.pending = all.split_off(error.valid_up_to());
        }
        String::from_utf8_lossy(&all).into_owned()
    }
}

/// Calls `run` and hands over what it prints meanwhile. `end` is that of the sandbox's
/// scratch.
pub fn follow<T>(services: &dyn HostServices, end: ScratchEnd, run_id: u64, run: impl FnOnce() -> T) -> T {
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let follower = thread::Builder::new().name("wcpod-output".into()).spawn_scoped(scope, || {
            let mut places = [Place::default(), Place::default()];
            while !ended.load(Ordering::Acquire) {
                thread::park_timeout(INTERVAL);
                look(services, end, run_id, &mut places, false);
            }
            look(services, end, run_id, &mut places, true);
        });
        let result = run();
        ended.store(true, Ordering::Release);
        if let Ok(thread) = &follower {
            thread.thread().unpark();
        }
        result
    })
}

fn look(services: &dyn HostServices, scratch: ScratchEnd, run_id: u64, places: &mut [Place; 2], end: bool) {
    let Ok(window) = OutputWindow::open(scratch) else { return };
    for (to_stderr, place) in [false, true].into_iter().zip(places) {
        let Ok((bytes, written)) = window.read_since(run_id, to_stderr, place.seen) else { continue };
        let lost = written.saturating_sub(place.seen).saturating_sub(bytes.len() as u64);
        place.seen = written.max(place.seen);
        if lost > 0 {
            services.output(to_stderr, &format!("\n[... {lost} bytes left out ...]\n"));
        }
        let text = place.text(bytes, end);
        if !text.is_empty() {
            services.output(to_stderr, &text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_come_whole() {
        let mut place = Place::default();
        assert_eq!(place.text("世".as_bytes()[..2].to_vec(), false), "");
        assert_eq!(place.text([&"世".as_bytes()[2..], b"x"].concat(), false), "世x");
        assert_eq!(place.text(vec![0xff, b'y'], false), "\u{fffd}y");
        assert_eq!(place.text("界".as_bytes()[..1].to_vec(), false), "");
        assert_eq!(place.text(Vec::new(), true), "\u{fffd}");
    }
}
