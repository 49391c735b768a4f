//! What a Wasmtime without an operating system asks for.
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicPtr, Ordering};

use guest_abi::layout::{LINEAR_GUARD, LINEAR_RESERVATION};
use wasmtime::{Config, CustomCodeMemory};

use crate::linear_memory::Reservations;
use crate::shim::{self, TrapHandler};

/// Stack for Wasm frames, in bytes: deep Python recursion ends as an exception, not as a trap.
const WASM_STACK: usize = 32 << 20;

/// One thread, so plain words.
static THREAD_LOCAL: [AtomicPtr<u8>; 2] = [const { AtomicPtr::new(core::ptr::null_mut()) }; 2];

#[unsafe(no_mangle)]
extern "C" fn wasmtime_tls_get(slot: usize) -> *mut u8 {
    THREAD_LOCAL.get(slot).map_or(core::ptr::null_mut(), |word| word.load(Ordering::Relaxed))
}

#[unsafe(no_mangle)]
extern "C" fn wasmtime_tls_set(slot: usize, value: *mut u8) {
    if let Some(word) = THREAD_LOCAL.get(slot) {
        word.store(value, Ordering::Relaxed);
    }
}

#[unsafe(no_mangle)]
extern "C" fn wasmtime_init_traps(handler: TrapHandler) -> i32 {
    shim::set_trap_handler(handler);
    0
}

/// The component's code lies in an executable section already.
struct CodeInPlace;

impl CustomCodeMemory for CodeInPlace {
    fn required_alignment(&self) -> usize {
        4096
    }

    fn publish_executable(&self, _code: *const u8, _length: usize) -> wasmtime::Result<()> {
        Ok(())
    }

    fn unpublish_executable(&self, _code: *const u8, _length: usize) -> wasmtime::Result<()> {
        Ok(())
    }
}

/// The configuration. What it shares with `guest/aot` must be equal there, or the component is refused with the
/// difference named.
pub fn config() -> Config {
    let mut config = Config::new();
    config.signals_based_traps(true);
    config.memory_reservation(LINEAR_RESERVATION);
    config.memory_guard_size(LINEAR_GUARD);
    config.memory_init_cow(false);
    config.async_stack_size(WASM_STACK); // not used, but the next one may not exceed it
    config.max_wasm_stack(WASM_STACK);
    config.with_host_memory(Arc::new(Reservations));
    config.with_custom_code_memory(Some(Arc::new(CodeInPlace)));
    // SAFETY: the component is compiled for plain x86-64, so there is no optional feature to vouch for.
    unsafe { config.detect_host_feature(|_| Some(false)) };
    config
}

/// Leaks `value`: the interpreter lives as long as the micro-VM.
pub fn forever<T>(value: T) -> &'static mut T {
    Box::leak(Box::new(value))
}
