//! The thread that interrupts a run whose time is over or that was given up.
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::stop::{Stop, StopReason};

/// Between two interrupts of a run that has not ended yet: one may come before the virtual CPU runs, and is then lost.
const RETRY: Duration = Duration::from_millis(2);

struct Watched {
    stop: Arc<Stop>,
    deadline: Instant,
}

#[derive(Default)]
struct State {
    watched: Option<Watched>,
    /// When the thread will look again by itself.
    looks_at: Option<Instant>,
    closing: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Watches one sandbox, for as long as it lives.
pub struct Watchdog {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Starts the thread; `interrupt` interrupts whatever the sandbox runs.
    ///
    /// # Errors
    /// The system has no more threads to give.
    pub fn start(interrupt: impl Fn() + Send + 'static) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let other = Arc::clone(&shared);
        let thread = thread::Builder::new().name("wcpod-watchdog".into()).spawn(move || watch(&other, &interrupt))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Calls `run` under watch: from `deadline` on, or once `stop` is requested, it is interrupted until it returns.
    ///
    /// An interrupt is sent only under the lock that ends the watch, so none is under way when this returns: the next run
    /// cannot be hit by it.
    pub fn watch<T>(&self, stop: &Arc<Stop>, deadline: Instant, run: impl FnOnce() -> T) -> T {
        {
            let mut state = self.shared.lock();
            state.watched = Some(Watched { stop: Arc::clone(stop), deadline });
            // Waking a thread costs more than a small run's Python. One that still sleeps for an earlier run, and wakes in
            // time, is let sleep.
            if stop.reason().is_some() || state.looks_at.is_none_or(|at| deadline < at) {
                self.shared.changed.notify_all();
            }
        }
        let result = run();
        self.shared.lock().watched = None;
        result
    }

    /// Has the thread look again: a stop was requested.
    pub fn waker(&self) -> impl Fn() + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move || {
            let _state = shared.lock();
            shared.changed.notify_all();
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn watch(shared: &Shared, interrupt: &dyn Fn()) {
    let mut state = shared.lock();
    while !state.closing {
        let nap = match &state.watched {
            None => Duration::from_secs(3600),
            Some(watched) => {
                let left = watched.deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    watched.stop.note(StopReason::TimedOut);
                }
                if watched.stop.reason().is_some() {
                    interrupt();
                    RETRY
                } else {
                    left
                }
            }
        };
        state.looks_at = Instant::now().checked_add(nap);
        state = shared.changed.wait_timeout(state, nap).unwrap_or_else(PoisonError::into_inner).0;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// Counts interrupts.
    #[derive(Clone, Default)]
    struct Interrupts(Arc<AtomicU32>);

    impl Interrupts {
        fn watchdog(&self) -> Watchdog {
            let count = Arc::clone(&self.0);
            let interrupt = move || {
                count.fetch_add(1, Ordering::Relaxed);
            };
            Watchdog::start(interrupt).unwrap()
        }

        /// Waits for the next one as a run would, for a second at most.
        fn came(&self) -> bool {
            let before = self.0.load(Ordering::Relaxed);
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_secs(1) {
                if self.0.load(Ordering::Relaxed) > before {
                    return true;
                }
                thread::sleep(Duration::from_millis(1));
            }
            false
        }
    }

    fn after(ms: u64) -> Instant {
        Instant::now() + Duration::from_millis(ms)
    }

    #[test]
    fn a_run_is_interrupted_at_its_own_deadline_whatever_the_last_one_s_was() {
        let interrupts = Interrupts::default();
        let watchdog = interrupts.watchdog();
        for (earlier, later) in [(60_000, 30), (30, 60), (1, 30), (60_000, 30)] {
            watchdog.watch(&Arc::default(), after(earlier), || ());
            let stop = Arc::new(Stop::default());
            let deadline = after(later);
            assert!(watchdog.watch(&stop, deadline, || interrupts.came()));
            assert!(Instant::now() >= deadline);
            assert_eq!(stop.reason(), Some(StopReason::TimedOut));
        }
    }

    #[test]
    fn a_stop_is_seen_when_it_comes_and_when_it_was_there_before() {
        let interrupts = Interrupts::default();
        let watchdog = interrupts.watchdog();
        watchdog.watch(&Arc::default(), after(60_000), || ());
        let stop = Arc::new(Stop::default());
        stop.request(StopReason::Cancelled);
        assert!(watchdog.watch(&stop, after(60_000), || interrupts.came()));
        let stop = Arc::new(Stop::default());
        let (wake, other) = (watchdog.waker(), Arc::clone(&stop));
        let cancel = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            other.request(StopReason::Cancelled);
            wake();
        });
        assert!(watchdog.watch(&stop, after(60_000), || interrupts.came()));
        cancel.join().unwrap();
    }

    #[test]
    fn nothing_is_interrupted_between_runs() {
        let interrupts = Interrupts::default();
        let watchdog = interrupts.watchdog();
        watchdog.watch(&Arc::default(), after(5), || ());
        thread::sleep(Duration::from_millis(50));
        assert_eq!(interrupts.0.load(Ordering::Relaxed), 0);
    }
}
