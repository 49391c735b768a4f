//! `wcpod-aot COMPONENT.wasm IMAGE`: compiles the Python component for the Wasmtime inside the guest.
//!
//! What is set here and in `guest/runtime/src/wasmtime_platform.rs` must be equal; the guest refuses an image that was
//! compiled otherwise and names the difference.
use std::error::Error;
use std::time::Instant;
use std::{env, fs};

use guest_abi::layout::{LINEAR_GUARD, LINEAR_RESERVATION};
use wasmtime::{Config, Engine};

fn main() -> Result<(), Box<dyn Error>> {
    let [_, component, image] =
        env::args().collect::<Vec<_>>().try_into().map_err(|_| "usage: wcpod-aot COMPONENT.wasm IMAGE")?;
    let mut config = Config::new();
    config.target("x86_64-unknown-linux-gnu")?; // named, so that features of the building machine are not used
    config.signals_based_traps(true);
    config.memory_reservation(LINEAR_RESERVATION);
    config.memory_guard_size(LINEAR_GUARD);
    config.memory_init_cow(false);
    config.generate_address_map(false);
    config.native_unwind_info(false);
    let begin = Instant::now();
    let wasm = fs::read(&component)?;
    let compiled = Engine::new(&config)?.precompile_component(&wasm)?;
    fs::write(&image, &compiled)?;
    eprintln!(
        "compiled {:.1} MB to {:.1} MB in {:.0?}",
        wasm.len() as f64 / 1e6,
        compiled.len() as f64 / 1e6,
        begin.elapsed()
    );
    Ok(())
}
