//! What a run has used up: fetches, bytes, connections under way, and when a host may be asked again.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::limits::FetchLimits;
use crate::stop::Stop;

#[derive(Debug, Default)]
struct Used {
    fetches: u32,
    bytes: u64,
    under_way: usize,
    next_request: HashMap<String, Instant>,
}

/// The shared account of one run.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    used: Mutex<Used>,
    freed: Condvar,
}

/// The right to have one fetch under way; given back when dropped.
#[derive(Debug)]
pub(crate) struct Slot<'a>(&'a Ledger);

/// Bytes set aside for one page; what was not used is given back when dropped.
#[derive(Debug)]
pub(crate) struct Allowance<'a> {
    ledger: &'a Ledger,
    bytes: usize,
    spent: usize,
}

impl Ledger {
    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one fetch, however it will end.
    pub(crate) fn count(&self, limits: &FetchLimits) -> Result<(), Stop> {
        let mut used = self.used();
        if used.fetches >= limits.fetches {
            return Err(Stop::blocked(format!("this run has used its {} fetches", limits.fetches), None));
        }
        used.fetches += 1;
        Ok(())
    }

    /// Waits until fewer than `limits.concurrent` fetches are under way.
    pub(crate) fn slot(&self, limits: &FetchLimits, deadline: Instant) -> Result<Slot<'_>, Stop> {
        let mut used = self.used();
        while used.under_way >= limits.concurrent {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Stop::deadline("waiting for other fetches of this run"));
            }
            used = self.freed.wait_timeout(used, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        used.under_way += 1;
        Ok(Slot(self))
    }

    /// Sets aside up to one page of the run's bytes.
    pub(crate) fn allowance(&self, limits: &FetchLimits) -> Result<Allowance<'_>, Stop> {
        let mut used = self.used();
        let left = limits.total_bytes.saturating_sub(used.bytes);
        if left == 0 {
            return Err(Stop::blocked(format!("this run has used its {} bytes of pages", limits.total_bytes), None));
        }
        let bytes = usize::try_from(left).map_or(limits.page_bytes, |left| left.min(limits.page_bytes));
        used.bytes += bytes as u64;
        Ok(Allowance { ledger: self, bytes, spent: 0 })
    }

    /// Puts off every request to `host` for at least `wait`.
    pub(crate) fn hold(&self, host: &str, wait: Duration) {
        let now = Instant::now();
        let mut used = self.used();
        let next = used.next_request.entry(host.to_owned()).or_insert(now);
        *next = now.checked_add(wait).map_or(*next, |until| until.max(*next));
    }

    /// Reserves the next request to `host` and says how long to wait before it; `None`, and nothing reserved, when
    /// that would be too late.
    pub(crate) fn pause_before(&self, host: &str, pause: Duration, deadline: Instant) -> Option<Duration> {
        let now = Instant::now();
        let mut used = self.used();
        let next = used.next_request.entry(host.to_owned()).or_insert(now);
        let start = (*next).max(now);
        if start > now && start >= deadline {
            return None;
        }
        *next = start.checked_add(pause).unwrap_or(start);
        Some(start.saturating_duration_since(now))
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.0.used().under_way -= 1;
        self.0.freed.notify_one();
    }
}

impl Allowance<'_> {
    /// The bytes that the page may have.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Notes what the page really had.
    pub(crate) fn spend(&mut self, bytes: usize) {
        self.spent = bytes.min(self.bytes);
    }
}

impl Drop for Allowance<'_> {
    fn drop(&mut self) {
        self.ledger.used().bytes -= (self.bytes - self.spent) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(20)
    }

    #[test]
    fn fetches_are_counted_up_to_the_limit() {
        let ledger = Ledger::default();
        let limits = FetchLimits { fetches: 2, ..FetchLimits::default() };
        assert_eq!(ledger.count(&limits), Ok(()));
        assert_eq!(ledger.count(&limits), Ok(()));
        assert_eq!(ledger.count(&limits), Err(Stop::blocked("this run has used its 2 fetches", None)));
    }

    #[test]
    fn a_slot_is_given_back() {
        let ledger = Ledger::default();
        let limits = FetchLimits { concurrent: 1, ..FetchLimits::default() };
        let slot = ledger.slot(&limits, soon()).expect("free");
        assert_eq!(ledger.slot(&limits, soon()).err(), Some(Stop::deadline("waiting for other fetches of this run")));
        drop(slot);
        assert!(ledger.slot(&limits, soon()).is_ok());
    }

    #[test]
    fn unused_bytes_are_given_back() {
        let ledger = Ledger::default();
        let limits = FetchLimits { total_bytes: 100, page_bytes: 80, ..FetchLimits::default() };
        let mut first = ledger.allowance(&limits).expect("bytes");
        assert_eq!(first.bytes(), 80);
        first.spend(50);
        drop(first);
        let mut second = ledger.allowance(&limits).expect("bytes");
        assert_eq!(second.bytes(), 50);
        second.spend(50);
        drop(second);
        assert_eq!(
            ledger.allowance(&limits).err(),
            Some(Stop::blocked("this run has used its 100 bytes of pages", None))
        );
    }

    fn pause_before(ledger: &Ledger, host: &str, pause: u64, within: u64) -> Option<u64> {
        let seconds = Duration::from_secs;
        let wait = ledger.pause_before(host, seconds(pause), Instant::now() + seconds(within))?;
        Some(wait.as_millis().div_ceil(1000) as u64)
    }

    #[test]
    fn requests_to_one_host_are_spaced() {
        let ledger = Ledger::default();
        assert_eq!(pause_before(&ledger, "a", 10, 60), Some(0));
        assert_eq!(pause_before(&ledger, "b", 10, 60), Some(0));
        assert_eq!(pause_before(&ledger, "a", 10, 60), Some(10));
        assert_eq!(pause_before(&ledger, "a", 10, 60), Some(20));
    }

    #[test]
    fn a_request_that_would_come_too_late_reserves_nothing() {
        let ledger = Ledger::default();
        assert_eq!(pause_before(&ledger, "a", 10, 60), Some(0));
        assert_eq!(pause_before(&ledger, "a", 10, 5), None);
        assert_eq!(pause_before(&ledger, "a", 10, 5), None);
        assert_eq!(pause_before(&ledger, "a", 10, 60), Some(10));
    }

    #[test]
    fn a_host_that_asks_to_wait_is_left_alone() {
        let ledger = Ledger::default();
        ledger.hold("a", Duration::from_secs(50));
        ledger.hold("a", Duration::from_secs(10));
        assert_eq!(pause_before(&ledger, "a", 0, 60), Some(50));
        assert_eq!(pause_before(&ledger, "b", 0, 60), Some(0));
        ledger.hold("b", Duration::MAX);
        assert_eq!(pause_before(&ledger, "b", 0, 60), Some(0));
    }
}
