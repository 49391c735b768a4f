//! The time that a run starts with: the guest has no clock but the time-stamp counter, so it is told the date and the
//! counter's speed.
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Shortest span that the counter is measured over.
const SPAN: Duration = Duration::from_millis(5);

static START: OnceLock<(Instant, u64)> = OnceLock::new();

fn ticks() -> u64 {
    // SAFETY: the instruction exists on every x86-64 processor and touches no memory.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Begins to measure the counter. The longer before the first run, the better it is known.
pub fn begin() {
    START.get_or_init(|| (Instant::now(), ticks()));
}

/// Ticks of the time-stamp counter a second.
#[must_use]
pub fn tsc_hz() -> u64 {
    let &(instant, first) = START.get_or_init(|| (Instant::now(), ticks()));
    if let Some(left) = SPAN.checked_sub(instant.elapsed()) {
        thread::sleep(left);
    }
    let (last, elapsed) = (ticks(), instant.elapsed());
    (last.saturating_sub(first) as f64 / elapsed.as_secs_f64()) as u64
}

/// Nanoseconds since the epoch.
#[must_use]
pub fn wall_clock_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_is_as_fast_as_the_system_s_clock_says() {
        begin();
        let (wall_clock, counter) = (wall_clock_ns(), ticks());
        thread::sleep(Duration::from_millis(120));
        let (elapsed, counted) = (wall_clock_ns() - wall_clock, ticks() - counter);
        let expected = counted as f64 * 1e9 / elapsed as f64;
        let ratio = tsc_hz() as f64 / expected;
        assert!((0.98..1.02).contains(&ratio), "{} and {expected} ticks a second", tsc_hz());
    }
}
