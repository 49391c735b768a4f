//! The thread that interrupts a run whose time is over or that was given up.
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hyperlight_host::hypervisor::InterruptHandle;

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
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has no more threads to give.
    pub fn start(interrupt: Arc<dyn InterruptHandle>) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let other = Arc::clone(&shared);
        let thread = thread::Builder::new().name("wcpod-watchdog".into()).spawn(move || watch(&other, &*interrupt))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Calls `run` under watch: from `deadline` on, or once `stop` is requested, it is interrupted until it returns.
    ///
    /// An interrupt is sent only under the lock that ends the watch, so none is under way when this returns: the next run
    /// cannot be hit by it.
    pub fn watch<T>(&self, stop: &Arc<Stop>, deadline: Instant, run: impl FnOnce() -> T) -> T {
        self.shared.lock().watched = Some(Watched { stop: Arc::clone(stop), deadline });
        self.shared.changed.notify_all();
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

fn watch(shared: &Shared, interrupt: &dyn InterruptHandle) {
    let mut state = shared.lock();
    while !state.closing {
        let nap = match &state.watched {
            None => Duration::from_secs(3600),
            Some(watched) => {
                let left = watched.deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    watched.stop.request(StopReason::Timeout);
                }
                if watched.stop.reason().is_some() {
                    interrupt.kill();
                    RETRY
                } else {
                    left
                }
            }
        };
        state = shared.changed.wait_timeout(state, nap).unwrap_or_else(PoisonError::into_inner).0;
    }
}
