//! Linear memories at fixed addresses: reserved whole, mapped by the shim when touched, grown up to the run's limit.
use alloc::boxed::Box;
use alloc::string::String;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use guest_abi::layout::{LINEAR_BASE, LINEAR_MEMORIES, LINEAR_RESERVATION, LINEAR_SHIFT};
use wasmtime::{LinearMemory, MemoryCreator, MemoryType};

const COUNT: usize = LINEAR_MEMORIES as usize;
const RESERVATION: usize = LINEAR_RESERVATION as usize;

unsafe extern "C" {
    /// End address of each linear memory; the shim makes pages below it.
    static mut shim_linear_end: [u64; COUNT];
}

static USED: AtomicUsize = AtomicUsize::new(0);
static LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);
static PEAK: AtomicU64 = AtomicU64::new(0);
static DENIED: AtomicBool = AtomicBool::new(false);

/// Sets the limit in bytes for the run that begins, and forgets what earlier ones did.
pub fn set_limit(bytes: u64) {
    LIMIT.store(bytes, Ordering::Relaxed);
    DENIED.store(false, Ordering::Relaxed);
}

/// Whether growth was refused since `set_limit`.
pub fn was_denied() -> bool {
    DENIED.load(Ordering::Relaxed)
}

/// Largest size so far, in bytes.
pub fn peak() -> u64 {
    PEAK.load(Ordering::Relaxed)
}

/// Makes memories at the addresses that the shim knows.
pub struct Reservations;

struct Memory {
    slot: usize,
    size: usize,
    capacity: usize,
}

impl Memory {
    fn resize(&mut self, size: usize) {
        self.size = size;
        PEAK.fetch_max(size as u64, Ordering::Relaxed);
        // SAFETY: one thread, and each memory has its own slot.
        unsafe { shim_linear_end[self.slot] = (self.base() + size) as u64 };
    }

    fn base(&self) -> usize {
        LINEAR_BASE as usize + (self.slot << LINEAR_SHIFT)
    }
}

// SAFETY: every byte below the size that is reported is mapped when touched and zero at first, the 4 GiB reservation and
// the guard behind it are never mapped beyond that size, and the base never moves.
unsafe impl MemoryCreator for Reservations {
    fn new_memory(
        &self,
        _ty: MemoryType,
        minimum: usize,
        maximum: Option<usize>,
        _reserved: Option<usize>,
        _guard: usize,
    ) -> Result<Box<dyn LinearMemory>, String> {
        let slot = USED.fetch_add(1, Ordering::Relaxed);
        if slot >= COUNT {
            return Err("the component has more linear memories than the guest has room for".into());
        }
        let mut memory = Memory { slot, size: 0, capacity: maximum.unwrap_or(RESERVATION).min(RESERVATION) };
        memory.resize(minimum);
        Ok(Box::new(memory))
    }
}

// SAFETY: as above.
unsafe impl LinearMemory for Memory {
    fn byte_size(&self) -> usize {
        self.size
    }

    fn byte_capacity(&self) -> usize {
        self.capacity
    }

    fn grow_to(&mut self, size: usize) -> wasmtime::Result<()> {
        if size > self.capacity || size as u64 > LIMIT.load(Ordering::Relaxed) {
            DENIED.store(true, Ordering::Relaxed);
            wasmtime::bail!("memory limit reached");
        }
        self.resize(size);
        Ok(())
    }

    fn as_ptr(&self) -> *mut u8 {
        self.base() as *mut u8
    }
}
