//! The Rust side of the shim (guest/shim): mode, page recording, traps.
use alloc::vec::Vec;

unsafe extern "C" {
    static shim_mode: u32;
    static mut known_page_count: u64;
    static mut known_pages: *mut u64;
    static mut trap_handler: Option<TrapHandler>;
    fn shim_record_faults(on: i32);
    fn shim_recorded(pages: *mut *const u64) -> u64;
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

/// Begins to log which pages fault.
pub fn begin_recording() {
    // SAFETY: touches only the shim's own pages.
    unsafe { shim_record_faults(1) }
}

/// Keeps the logged pages as those to copy after every restore. Returns how many there are.
pub fn keep_recorded_pages() -> usize {
    let mut pages: Vec<u64> = {
        let mut first = core::ptr::null();
        // SAFETY: the shim returns a pointer to as many words as it counts, in pages that stay mapped.
        unsafe {
            let count = shim_recorded(&mut first);
            shim_record_faults(0);
            core::slice::from_raw_parts(first, count as usize).to_vec()
        }
    };
    pages.sort_unstable();
    pages.dedup();
    let count = pages.len();
    let list = pages.leak();
    // SAFETY: one thread; the shim reads the list only right after a restore.
    unsafe {
        known_pages = list.as_mut_ptr();
        known_page_count = count as u64;
    }
    count
}
