//! What a run does while it runs, for whoever listens: host calls that have ended, and text that was printed.
//!
//! A listener takes events on a thread of its own. The run never waits for it, but for a moment at its end: a listener that
//! hangs is left behind.
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::output_window::OutputWindow;
use crate::run::CallRecord;
use crate::scratch::ScratchEnd;
use crate::stop::{Stop, StopReason};

/// Between two looks at what was printed.
const INTERVAL: Duration = Duration::from_millis(20);
/// A run that must end waits so long for its listener.
const GRACE: Duration = Duration::from_millis(200);

/// Something that happened.
#[derive(Debug)]
pub enum Event {
    /// A host call has ended.
    Call(Box<CallRecord>),
    /// Text was printed, in whole characters.
    Output {
        /// To standard error, not standard output.
        to_stderr: bool,
        /// The text.
        text: String,
    },
}

#[derive(Default)]
struct State {
    calls: VecDeque<CallRecord>,
    /// Where the output of the run can be read, from the moment it is dispatched.
    source: Option<(ScratchEnd, u64)>,
    over: bool,
    /// The listener has taken everything, or was left behind.
    done: bool,
}

/// The events of one run.
pub struct Events {
    state: Mutex<State>,
    changed: Condvar,
    wants_calls: bool,
    output: Option<Mutex<Follower>>,
}

impl Events {
    /// For a listener that wants to know of host calls, of output, or of both. A run that hands over more than
    /// `most_output` bytes of output is stopped.
    #[must_use]
    pub fn new(wants_calls: bool, wants_output: bool, most_output: u64) -> Self {
        let follower = || Mutex::new(Follower { left: most_output, ..Follower::default() });
        Self { state: Mutex::default(), changed: Condvar::new(), wants_calls, output: wants_output.then(follower) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next event; `None` once the run is over and everything was taken. Waits for one.
    pub fn next(&self) -> Option<Event> {
        let mut state = self.lock();
        loop {
            if state.done {
                return None;
            }
            if let Some(call) = state.calls.pop_front() {
                return Some(Event::Call(Box::new(call)));
            }
            let (source, over) = (state.source, state.over);
            drop(state);
            if let Some(event) = self.printed(source, over) {
                return Some(event);
            }
            state = self.lock();
            if over && state.calls.is_empty() {
                state.done = true;
                self.changed.notify_all();
                return None;
            }
            // What has come meanwhile is taken without a wait.
            if state.calls.is_empty() && state.over == over {
                let nap = if self.output.is_some() { INTERVAL } else { Duration::from_secs(3600) };
                state = self.changed.wait_timeout(state, nap).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }

    fn printed(&self, source: Option<(ScratchEnd, u64)>, over: bool) -> Option<Event> {
        let (scratch, run_id) = source?;
        let mut follower = self.output.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        follower.next(scratch, run_id, over)
    }

    pub(crate) fn begin(&self, scratch: ScratchEnd, run_id: u64, stop: &Arc<Stop>) {
        if let Some(output) = &self.output {
            output.lock().unwrap_or_else(PoisonError::into_inner).stop = Some(Arc::clone(stop));
        }
        self.lock().source = Some((scratch, run_id));
        self.changed.notify_all();
    }

    pub(crate) fn call_ended(&self, record: &CallRecord) {
        if self.wants_calls {
            self.lock().calls.push_back(record.clone());
            self.changed.notify_all();
        }
    }

    /// The run has ended. Waits until the listener has taken everything: no longer than to `deadline`, and only for a
    /// moment where it has passed or the run was stopped.
    pub(crate) fn end(&self, deadline: Instant, stop: &Stop) {
        let mut state = self.lock();
        state.over = true;
        self.changed.notify_all();
        let mut until = deadline + GRACE;
        while !state.done {
            if stop.reason().is_some() {
                until = until.min(Instant::now() + GRACE);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.changed.wait_timeout(state, left.min(INTERVAL)).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.done = true;
        self.changed.notify_all();
    }

    /// Nothing comes any more, and nothing that came is given out.
    pub(crate) fn close(&self) {
        self.lock().done = true;
        self.changed.notify_all();
    }
}

/// Follows both streams of a run.
#[derive(Default)]
struct Follower {
    places: [Place; 2],
    /// Bytes that may still be handed over.
    left: u64,
    stop: Option<Arc<Stop>>,
}

impl Follower {
    fn next(&mut self, scratch: ScratchEnd, run_id: u64, over: bool) -> Option<Event> {
        let window = OutputWindow::open(scratch).ok()?;
        for (to_stderr, place) in [false, true].into_iter().zip(&mut self.places) {
            let Ok((bytes, written)) = window.read_since(run_id, to_stderr, place.seen) else { continue };
            let lost = written.saturating_sub(place.seen).saturating_sub(bytes.len() as u64);
            place.seen = written.max(place.seen);
            let mut text = place.text(bytes, over);
            if lost > 0 {
                text.insert_str(0, &format!("\n[... {lost} bytes left out ...]\n"));
            }
            if text.is_empty() {
                continue;
            }
            self.left = self.left.saturating_sub(text.len() as u64);
            if let (0, Some(stop)) = (self.left, &self.stop) {
                stop.request(StopReason::Output);
                return None;
            }
            return Some(Event::Output { to_stderr, text });
        }
        None
    }
}

/// How far one stream was followed.
#[derive(Default)]
struct Place {
    /// Bytes that were taken over.
    seen: u64,
    /// First bytes of a character whose last have not come yet.
    pending: Vec<u8>,
}

impl Place {
    /// The text of pending and new bytes; when the run is `over` also of what is no whole character.
    fn text(&mut self, mut bytes: Vec<u8>, over: bool) -> String {
        let mut all = std::mem::take(&mut self.pending);
        all.append(&mut bytes);
        if !over
            && let Err(error) = std::str::from_utf8(&all)
            && error.error_len().is_none()
        {
            self.pending = all.split_off(error.valid_up_to());
        }
        String::from_utf8_lossy(&all).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::run::CallStatus;

    fn record(name: &str) -> CallRecord {
        CallRecord::new(name, CallStatus::Ok, Duration::ZERO, None, None)
    }

    fn soon(ms: u64) -> Instant {
        Instant::now() + Duration::from_millis(ms)
    }

    #[test]
    fn characters_come_whole() {
        let mut place = Place::default();
        assert_eq!(place.text("世".as_bytes()[..2].to_vec(), false), "");
        assert_eq!(place.text([&"世".as_bytes()[2..], b"x"].concat(), false), "世x");
        assert_eq!(place.text(vec![0xff, b'y'], false), "\u{fffd}y");
        assert_eq!(place.text("界".as_bytes()[..1].to_vec(), false), "");
        assert_eq!(place.text(Vec::new(), true), "\u{fffd}");
    }

    #[test]
    fn a_listener_gets_every_call_before_the_end() {
        let events = Arc::new(Events::new(true, false, 0));
        let queue = Arc::clone(&events);
        let listener = thread::spawn(move || {
            let mut names = Vec::new();
            while let Some(Event::Call(call)) = queue.next() {
                thread::sleep(Duration::from_millis(10));
                names.push(call.name.to_string());
            }
            names
        });
        for name in ["a", "b", "c"] {
            events.call_ended(&record(name));
        }
        events.end(soon(5_000), &Stop::default());
        assert_eq!(listener.join().unwrap(), ["a", "b", "c"]);
    }

    #[test]
    fn a_listener_that_hangs_is_left_behind() {
        let events = Arc::new(Events::new(true, false, 0));
        let queue = Arc::clone(&events);
        let listener = thread::spawn(move || {
            let first = queue.next().is_some();
            thread::sleep(Duration::from_millis(600));
            (first, queue.next().is_none())
        });
        events.call_ended(&record("a"));
        events.call_ended(&record("b"));
        thread::sleep(Duration::from_millis(20));
        let begin = Instant::now();
        events.end(soon(20), &Stop::default());
        assert!(begin.elapsed() < Duration::from_millis(500));
        assert_eq!(listener.join().unwrap(), (true, true));
    }
}
