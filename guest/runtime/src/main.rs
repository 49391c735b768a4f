//! The guest: CPython as a Wasm component, on Wasmtime, on nothing.
//!
//! The host calls `Boot` once, `Execute` for each run, after `PlaceInputs` where there are any, and `KeepTouched` after
//! the rehearsal whose dirtied pages are to be copied up front after every restore. Everything the component may reach is
//! in this address space, apart from three host functions: `FetchUrl`, `CallTool` and `Sleep`.
//!
//! Numbers and text travel in the call itself; byte strings would each be mapped and unmapped by Hyperlight, which costs
//! more than a small run. So seeds are words, and the outcome goes through the output window.
#![no_std]
#![no_main]

extern crate alloc;

mod clock;
mod host;
#[cfg(feature = "hostile")]
mod hostile;
mod image;
mod linear_memory;
mod memory_functions;
mod output_window;
mod python;
mod shim;
mod wasmtime_platform;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use guest_abi::function::guest::{self, BOOT, KEEP_TOUCHED, PLACE_INPUTS};
use hyperlight_common::flatbuffer_wrappers::function_call::FunctionCall;
use hyperlight_common::flatbuffer_wrappers::function_types::ReturnValue;
use hyperlight_common::flatbuffer_wrappers::guest_error::ErrorCode;
use hyperlight_guest::bail;
use hyperlight_guest::error::Result;
use hyperlight_guest_bin::guest_function::register::register_fn;

/// Starts the interpreter. Returns the privilege mode, 0 or 3.
fn boot(wall_clock_ns: u64, tsc_hz: u64, seed_0: u64, seed_1: u64, seed_2: u64, seed_3: u64) -> Result<u64> {
    clock::set(wall_clock_ns, tsc_hz);
    match python::boot(seed([seed_0, seed_1, seed_2, seed_3])) {
        Ok(()) => Ok(u64::from(shim::privilege_mode())),
        Err(error) => bail!(ErrorCode::GuestError => "cannot start the interpreter: {error:?}"),
    }
}

/// Places encoded files below /input for the run that follows. Returns how many.
fn place_inputs(files: Vec<u8>) -> Result<u64> {
    match python::place_inputs(&files) {
        Ok(count) => Ok(count),
        Err(error) => bail!(ErrorCode::GuestError => "{error}"),
    }
}

/// Runs `code`. Returns the length of the encoded outcome in the output window.
#[expect(clippy::too_many_arguments, reason = "Hyperlight hands over numbers and texts, not structs")]
fn execute(
    run_id: u64,
    wall_clock_ns: u64,
    tsc_hz: u64,
    seed_0: u64,
    seed_1: u64,
    seed_2: u64,
    seed_3: u64,
    memory_bytes: u64,
    output_bytes: u64,
    tools: String,
    code: String,
) -> u64 {
    clock::set(wall_clock_ns, tsc_hz);
    output_window::open(run_id, output_bytes);
    linear_memory::set_limit(memory_bytes);
    #[cfg(feature = "hostile")]
    hostile::act(&code);
    let record = python::execute(seed([seed_0, seed_1, seed_2, seed_3]), &tools, code);
    output_window::store_outcome(&record)
}

/// After a rehearsal run from a restored snapshot: keeps the pages that it touched as those to prepare after every
/// restore. Returns how many are copied.
fn keep_touched() -> u64 {
    shim::keep_touched() as u64
}

fn seed(words: [u64; 4]) -> [u8; 32] {
    let mut seed = [0; 32];
    for (bytes, word) in seed.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    seed
}

/// Hyperlight's start hook.
#[unsafe(no_mangle)]
pub extern "C" fn hyperlight_main() {
    register_fn(BOOT, boot);
    register_fn(PLACE_INPUTS, place_inputs);
    #[cfg(not(feature = "hostile"))]
    register_fn(guest::EXECUTE, execute);
    register_fn(KEEP_TOUCHED, keep_touched);
}

/// Hyperlight's handler for functions that are not registered.
#[unsafe(no_mangle)]
pub fn guest_dispatch_function(call: FunctionCall) -> Result<ReturnValue> {
    #[cfg(feature = "hostile")]
    if let Some(answer) = hostile::answer(&call) {
        return answer;
    }
    bail!(ErrorCode::GuestFunctionNotFound => "{}", format!("the guest has no function {:?}", call.function_name))
}
