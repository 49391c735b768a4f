//! The guest: CPython as a Wasm component, on Wasmtime, on nothing.
//!
//! The host calls three functions: `Boot` once, `Execute` for each run, `RecordPages` around the run whose dirtied pages
//! are to be copied up front after every restore. Everything the component may reach is in this address space, apart from
//! three host functions: `FetchUrl`, `CallTool` and `Sleep`.
#![no_std]
#![no_main]

extern crate alloc;

mod clock;
mod host;
mod image;
mod linear_memory;
mod memory_functions;
mod outcome;
mod output_window;
mod python;
mod shim;
mod wasmtime_platform;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use hyperlight_common::flatbuffer_wrappers::function_call::FunctionCall;
use hyperlight_common::flatbuffer_wrappers::function_types::ReturnValue;
use hyperlight_common::flatbuffer_wrappers::guest_error::ErrorCode;
use hyperlight_guest::bail;
use hyperlight_guest::error::Result;
use hyperlight_guest_bin::guest_function;

use crate::python::Run;

/// Starts the interpreter. Returns the privilege mode, 0 or 3.
#[guest_function("Boot")]
fn boot(wall_clock_ns: u64, tsc_hz: u64, seed: Vec<u8>) -> Result<u64> {
    clock::set(wall_clock_ns, tsc_hz);
    match python::boot(seed_of(&seed)) {
        Ok(()) => Ok(u64::from(shim::privilege_mode())),
        Err(error) => bail!(ErrorCode::GuestError => "cannot start the interpreter: {error:?}"),
    }
}

/// Runs `code`. Output is in the output window; the rest is an encoded outcome, see `outcome.rs`.
#[allow(clippy::too_many_arguments)]
#[guest_function("Execute")]
fn execute(
    run_id: u64,
    wall_clock_ns: u64,
    tsc_hz: u64,
    seed: Vec<u8>,
    memory_bytes: u64,
    output_bytes: u64,
    tools: String,
    inputs: Vec<u8>,
    code: String,
) -> Vec<u8> {
    clock::set(wall_clock_ns, tsc_hz);
    output_window::open(run_id, output_bytes);
    linear_memory::set_limit(memory_bytes);
    python::execute(Run {
        seed: seed_of(&seed),
        tools: &tools,
        inputs: &inputs,
        code,
    })
}

/// Before a rehearsal run (`on`): begins to log page faults. After it: keeps the logged pages as the known ones, and
/// returns how many they are.
#[guest_function("RecordPages")]
fn record_pages(on: bool) -> u64 {
    if on {
        shim::begin_recording();
        0
    } else {
        shim::keep_recorded_pages() as u64
    }
}

fn seed_of(bytes: &[u8]) -> [u8; 32] {
    let mut seed = [0; 32];
    for (to, from) in seed.iter_mut().zip(bytes) {
        *to = *from;
    }
    seed
}

/// Hyperlight's start hook: nothing to do before `Boot`.
#[unsafe(no_mangle)]
pub extern "C" fn hyperlight_main() {}

/// Hyperlight's handler for functions that are not registered.
#[unsafe(no_mangle)]
pub fn guest_dispatch_function(call: FunctionCall) -> Result<ReturnValue> {
    bail!(ErrorCode::GuestFunctionNotFound => "{}", format!("the guest has no function {:?}", call.function_name))
}
