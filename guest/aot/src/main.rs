//! `wcpod-aot adapt RAW.wasm OBJECTS COMPONENT.wasm`: changes the Python component for its use in the guest (`interpreter`).
//! `wcpod-aot compile COMPONENT.wasm IMAGE`: compiles it for the Wasmtime inside the guest.
//!
//! What is set here and in `guest/runtime/src/wasmtime_platform.rs` must be equal; the guest refuses an image that was
//! compiled otherwise and names the difference.
mod interpreter;

use std::time::Instant;
use std::{env, fs};

use guest_abi::layout::{LINEAR_GUARD, LINEAR_RESERVATION};
use wasmtime::{Config, Engine};

use crate::interpreter::Result;

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["adapt", raw, objects, component] => adapt(raw, objects, component),
        ["compile", component, image] => compile(component, image),
        _ => {
            Err("usage: wcpod-aot adapt RAW.wasm OBJECTS COMPONENT.wasm, or wcpod-aot compile COMPONENT.wasm IMAGE"
                .into())
        }
    }
}

fn adapt(raw: &str, objects: &str, component: &str) -> Result<()> {
    let mut wasm = fs::read(raw)?;
    let pinned = interpreter::pin(&mut wasm, &fs::read(objects)?)?;
    fs::write(component, interpreter::count_stack(&wasm)?)?;
    eprintln!("{pinned} objects pinned");
    Ok(())
}

fn compile(component: &str, image: &str) -> Result<()> {
    let mut config = Config::new();
    config.target("x86_64-unknown-linux-gnu")?; // named, so that features of the building machine are not used
    config.signals_based_traps(true);
    config.memory_reservation(LINEAR_RESERVATION);
    config.memory_guard_size(LINEAR_GUARD);
    config.memory_init_cow(false);
    config.generate_address_map(false);
    config.native_unwind_info(false);
    let begin = Instant::now();
    let wasm = fs::read(component)?;
    let compiled = Engine::new(&config)?.precompile_component(&wasm)?;
    fs::write(image, &compiled)?;
    eprintln!(
        "compiled {:.1} MB to {:.1} MB in {:.0?}",
        wasm.len() as f64 / 1e6,
        compiled.len() as f64 / 1e6,
        begin.elapsed()
    );
    Ok(())
}
