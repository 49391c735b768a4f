//! Time inside a run: the host's wall clock at its start, advanced by the time-stamp counter.
use core::arch::x86_64::_rdtsc;
use core::sync::atomic::{AtomicU64, Ordering};

static WALL_CLOCK_NS: AtomicU64 = AtomicU64::new(0);
static TSC_AT_START: AtomicU64 = AtomicU64::new(0);
static TSC_HZ: AtomicU64 = AtomicU64::new(1_000_000_000);

/// Sets the clock: nanoseconds since the epoch, and ticks of the time-stamp counter a second.
pub fn set(wall_clock_ns: u64, tsc_hz: u64) {
    WALL_CLOCK_NS.store(wall_clock_ns, Ordering::Relaxed);
    TSC_HZ.store(tsc_hz.max(1), Ordering::Relaxed);
    TSC_AT_START.store(ticks(), Ordering::Relaxed);
}

fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and neither mode forbids it.
    unsafe { _rdtsc() }
}

/// Nanoseconds since the epoch.
pub fn wall_clock_ns() -> u64 {
    let elapsed = ticks().saturating_sub(TSC_AT_START.load(Ordering::Relaxed));
    let ns = u128::from(elapsed) * 1_000_000_000 / u128::from(TSC_HZ.load(Ordering::Relaxed));
    WALL_CLOCK_NS.load(Ordering::Relaxed).saturating_add(ns as u64)
}
