//! The Rust side of the shim (guest/shim): mode, page recording, traps.
use alloc::vec::Vec;

use guest_abi::layout::KnownTouches;

unsafe extern "C" {
    static shim_mode: u32;
    static mut known: KnownTouches;
    static mut trap_handler: Option<TrapHandler>;
    fn shim_recorded_pages(pages: *mut *const u64) -> u64;
    fn shim_recorded_tables(tables: *mut *const u64) -> u64;
}

/// Wasmtime's handler: instruction pointer, frame pointer, whether an address belongs to the trap, the address.
pub type TrapHandler = extern "C" fn(usize, usize, bool, usize);

/// 0: everything runs in ring 0; 3: everything but the shim runs in ring 3.
pub fn privilege_mode() -> u32 {
    // SAFETY: written once by the shim before any Rust runs.
    unsafe { shim_mode }
}

/// Has traps of Wasm code handed to `handler`.
pub fn set_trap_handler(handler: TrapHandler) {
    // SAFETY: one thread; the shim reads the word only when a trap occurs.
    unsafe { trap_handler = Some(handler) }
}

/// Keeps what was logged since the restore: the pages to copy and the tables to make reachable after every later one.
/// Returns the number of pages.
pub fn keep_touched() -> usize {
    let pages = distinct(shim_recorded_pages);
    let tables = distinct(shim_recorded_tables);
    let (page_count, table_count) = (pages.len(), tables.len());
    // SAFETY: one thread; the shim reads the lists only right after a restore.
    unsafe {
        known = KnownTouches {
            page_count: page_count as u64,
            pages: pages.leak().as_ptr() as u64,
            table_count: table_count as u64,
            tables: tables.leak().as_ptr() as u64,
        };
    }
    page_count
}

/// The addresses of a log, each once, in order.
fn distinct(log: unsafe extern "C" fn(*mut *const u64) -> u64) -> Vec<u64> {
    let mut first = core::ptr::null();
    // SAFETY: the shim returns a pointer to as many words as it counts, in pages that stay mapped.
    let mut addresses = unsafe {
        let count = log(&mut first);
        core::slice::from_raw_parts(first, count as usize).to_vec()
    };
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}
