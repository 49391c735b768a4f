//! A lock for the whole process that a fork cannot leave locked.
//!
//! A child of `fork` has a copy of every lock and only the thread that forked: a lock that another thread held stays locked
//! there for ever. So this one notes which process holds it, and what another process holds is free.
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

/// Between two tries. What the lock is held for takes milliseconds.
const NAP: Duration = Duration::from_micros(100);
const FREE: u32 = 0;

/// The lock: the id of the process that holds it, or zero.
#[derive(Debug)]
pub(crate) struct ForkLock(AtomicU32);

/// Held until this is dropped.
#[derive(Debug)]
pub(crate) struct Held<'a>(&'a ForkLock);

impl ForkLock {
    pub const fn new() -> Self {
        Self(AtomicU32::new(FREE))
    }

    /// Waits for the lock. It is only ever held for calls of the hypervisor that come back by themselves.
    pub fn hold(&self) -> Held<'_> {
        let own = process::id();
        loop {
            let owner = self.0.load(Ordering::Relaxed);
            let free =
                owner != own && self.0.compare_exchange(owner, own, Ordering::Acquire, Ordering::Relaxed).is_ok();
            if free {
                return Held(self);
            }
            thread::sleep(NAP);
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.0.store(FREE, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn one_thread_at_a_time() {
        let lock = Arc::new(ForkLock::new());
        let inside = Arc::new(AtomicBool::new(false));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (lock, inside) = (Arc::clone(&lock), Arc::clone(&inside));
                thread::spawn(move || {
                    for _ in 0..200 {
                        let _held = lock.hold();
                        assert!(!inside.swap(true, Ordering::SeqCst));
                        thread::yield_now();
                        inside.store(false, Ordering::SeqCst);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
    }

    #[test]
    fn what_another_process_holds_is_free() {
        // As a child of fork finds it: held by a process that is not this one.
        let lock = ForkLock(AtomicU32::new(process::id().wrapping_add(1)));
        drop(lock.hold());
        assert_eq!(lock.0.load(Ordering::SeqCst), FREE);
    }
}
