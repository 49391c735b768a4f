//! Why a run must end before its code does, and waiting that ends with it.
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Why a run is stopped from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// Its wall-clock limit is over.
    Timeout,
    /// The caller gave it up.
    Cancelled,
}

/// One run's stop signal. The first reason stays.
#[derive(Debug, Default)]
pub struct Stop {
    reason: Mutex<Option<StopReason>>,
    changed: Condvar,
}

impl Stop {
    fn lock(&self) -> MutexGuard<'_, Option<StopReason>> {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the run to end.
    pub fn request(&self, reason: StopReason) {
        self.lock().get_or_insert(reason);
        self.changed.notify_all();
    }

    /// Why the run must end, if it must.
    #[must_use]
    pub fn reason(&self) -> Option<StopReason> {
        *self.lock()
    }

    /// Waits until `deadline` or a stop, whichever is first. Returns the reason of a stop.
    pub fn wait_until(&self, deadline: Instant) -> Option<StopReason> {
        let mut reason = self.lock();
        while reason.is_none() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            reason = self.changed.wait_timeout(reason, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        *reason
    }

    /// Runs `work` on a thread of its own and waits for it until `deadline` or a stop. `None` when it was left behind: it
    /// goes on by itself, and what it returns is dropped.
    pub fn run_or_leave<T: Send + 'static>(
        self: &Arc<Self>,
        deadline: Instant,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let slot = Arc::new(Mutex::new(None));
        let (signal, result) = (Arc::clone(self), Arc::clone(&slot));
        let spawned = thread::Builder::new().name("wcpod-host-call".into()).spawn(move || {
            let value = work();
            *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
            // Under the signal's lock, so that the waiter cannot miss it between its check and its wait.
            let _reason = signal.lock();
            signal.changed.notify_all();
        });
        let worker = spawned.ok()?;
        let mut reason = self.lock();
        loop {
            if let Some(value) = slot.lock().unwrap_or_else(PoisonError::into_inner).take() {
                return Some(value);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if reason.is_some() || left.is_zero() || worker.is_finished() {
                return None;
            }
            // The cap is for a worker that panicked: it notifies nobody.
            let nap = left.min(Duration::from_millis(100));
            reason = self.changed.wait_timeout(reason, nap).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soon(ms: u64) -> Instant {
        Instant::now() + Duration::from_millis(ms)
    }

    #[test]
    fn the_first_reason_stays() {
        let stop = Stop::default();
        stop.request(StopReason::Timeout);
        stop.request(StopReason::Cancelled);
        assert_eq!(stop.reason(), Some(StopReason::Timeout));
    }

    #[test]
    fn waiting_ends_at_the_deadline_or_with_the_stop() {
        let stop = Arc::new(Stop::default());
        assert_eq!(stop.wait_until(soon(10)), None);
        let other = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            other.request(StopReason::Cancelled);
        });
        let begin = Instant::now();
        assert_eq!(stop.wait_until(soon(10_000)), Some(StopReason::Cancelled));
        assert!(begin.elapsed() < Duration::from_secs(5));
        thread.join().unwrap();
    }

    #[test]
    fn work_is_returned_left_behind_or_lost() {
        let stop = Arc::new(Stop::default());
        assert_eq!(stop.run_or_leave(soon(5_000), || 7), Some(7));
        let slow = || thread::sleep(Duration::from_millis(300));
        assert_eq!(stop.run_or_leave(soon(20), slow), None);
        assert_eq!(stop.run_or_leave(soon(5_000), || -> u8 { panic!("expected in this test") }), None);
        stop.request(StopReason::Cancelled);
        let begin = Instant::now();
        assert_eq!(stop.run_or_leave(soon(5_000), slow), None);
        assert!(begin.elapsed() < Duration::from_millis(250));
    }
}
