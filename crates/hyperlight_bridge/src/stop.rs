//! Why a run must end before its code does, and waiting that ends with it.
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

/// Why a run is stopped from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// Its wall-clock limit has passed.
    TimedOut,
    /// The caller cancelled it.
    Cancelled,
    /// It went on calling host functions long after its limit of calls.
    HostCalls,
    /// It printed far more than its output limit, by the host's own count.
    Output,
    /// It called a function that no guest of ours calls.
    Intruded,
}

type Waker = Box<dyn Fn() + Send + Sync>;

/// One run's stop signal. The first reason stays.
#[derive(Default)]
pub struct Stop {
    reason: Mutex<Option<StopReason>>,
    changed: Condvar,
    waker: Mutex<Option<Waker>>,
}

impl fmt::Debug for Stop {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Stop").field(&self.reason()).finish()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Stop {
    /// Asks the run to end, and wakes whoever ends it.
    pub fn request(&self, reason: StopReason) {
        self.note(reason);
        if let Some(wake) = &*lock(&self.waker) {
            wake();
        }
    }

    /// As [`Self::request`], for whoever ends it: wakes only those that wait in a host call.
    pub fn note(&self, reason: StopReason) {
        lock(&self.reason).get_or_insert(reason);
        self.changed.notify_all();
    }

    /// Sets what [`Self::request`] wakes.
    pub fn wake_with(&self, waker: Option<Waker>) {
        *lock(&self.waker) = waker;
    }

    /// Why the run must end, if it must.
    #[must_use]
    pub fn reason(&self) -> Option<StopReason> {
        *lock(&self.reason)
    }

    /// Waits until `deadline` or a stop, whichever is first. Returns the reason of a stop.
    pub fn wait_until(&self, deadline: Instant) -> Option<StopReason> {
        self.wait_for(deadline, || None::<()>);
        self.reason()
    }

    /// Waits until `ready` has something, `deadline`, or a stop. `ready` is asked again after each [`Self::look_again`].
    pub fn wait_for<T>(&self, deadline: Instant, mut ready: impl FnMut() -> Option<T>) -> Option<T> {
        let mut reason = lock(&self.reason);
        loop {
            if let Some(value) = ready() {
                return Some(value);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if reason.is_some() || left.is_zero() {
                return None;
            }
            reason = self.changed.wait_timeout(reason, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Has those that wait look again at what they wait for.
    pub fn look_again(&self) {
        // Under the lock, so that a waiter cannot miss it between its look and its wait.
        let _reason = lock(&self.reason);
        self.changed.notify_all();
    }

    /// Runs `work` on a thread of its own and waits for it until `deadline` or a stop. `None` when it was left behind, and
    /// then goes on by itself, or when it panicked.
    pub fn run_or_leave<T: Send + 'static>(
        self: &Arc<Self>,
        deadline: Instant,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let slot = Arc::new(Mutex::new(Slot::Pending));
        let ending = Ending { slot: Arc::clone(&slot), stop: Arc::clone(self) };
        let worker = thread::Builder::new().name("wcpod-host-call".into());
        worker.spawn(move || *lock(&ending.slot) = Slot::Done(work())).ok()?;
        let done = || match std::mem::replace(&mut *lock(&slot), Slot::Pending) {
            Slot::Pending => None,
            Slot::Done(value) => Some(Some(value)),
            Slot::Gone => Some(None),
        };
        self.wait_for(deadline, done).flatten()
    }
}

enum Slot<T> {
    Pending,
    Done(T),
    /// The worker ended without a value.
    Gone,
}

/// Tells the waiter that the worker has ended, also when it panics.
struct Ending<T> {
    slot: Arc<Mutex<Slot<T>>>,
    stop: Arc<Stop>,
}

impl<T> Drop for Ending<T> {
    fn drop(&mut self) {
        let mut slot = lock(&self.slot);
        if matches!(*slot, Slot::Pending) {
            *slot = Slot::Gone;
        }
        drop(slot);
        self.stop.look_again();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use super::*;

    fn soon(ms: u64) -> Instant {
        Instant::now() + Duration::from_millis(ms)
    }

    #[test]
    fn the_first_reason_stays_and_each_request_wakes() {
        let stop = Stop::default();
        let woken = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&woken);
        stop.wake_with(Some(Box::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
        })));
        stop.note(StopReason::TimedOut);
        assert_eq!(woken.load(Ordering::Relaxed), 0);
        stop.request(StopReason::Cancelled);
        assert_eq!(woken.load(Ordering::Relaxed), 1);
        assert_eq!(stop.reason(), Some(StopReason::TimedOut));
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
        let begin = Instant::now();
        assert_eq!(stop.run_or_leave(soon(5_000), || -> u8 { panic!("expected in this test") }), None);
        stop.request(StopReason::Cancelled);
        assert_eq!(stop.run_or_leave(soon(5_000), slow), None);
        assert!(begin.elapsed() < Duration::from_millis(250));
    }
}
