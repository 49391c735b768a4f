//! The interpreter: boots once before the snapshot, runs code after each restore.
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::UnsafeCell;

use guest_abi::inputs;
use guest_abi::outcome::{self, Files, Outcome};
use wasmtime::component::{Component, ComponentType, Lift, Linker, TypedFunc, WasmStr};
use wasmtime::{Engine, Store, StoreContextMut};
use wcpod_wasi::vfs::Limits;
use wcpod_wasi::{Exit, Wasi};

use crate::host::{self, Surroundings};
use crate::wasmtime_platform::{config, forever};
use crate::{clock, image, linear_memory};

type Data = Wasi<Surroundings>;

/// Longest argument of `fetch-url` and `call-tool`, in bytes. Checked where it lies, before anything is copied.
const MAX_ARGUMENT_BYTES: usize = 2 << 20;

/// What a run may leave in the file system. It lies in the heap, which the host makes larger than this.
const FILES: Limits = Limits { bytes: 24 << 20, files: 4096, open: 256 };

/// The component's `outcome` record.
#[derive(ComponentType, Lift)]
#[component(record)]
struct Returned {
    #[component(name = "exit-code")]
    exit_code: i32,
    value: Option<String>,
}

struct Interpreter {
    store: Store<Data>,
    execute: TypedFunc<(String, Vec<String>), (Returned,)>,
}

struct OneThread(UnsafeCell<Option<Interpreter>>);

// SAFETY: the guest has one thread.
unsafe impl Sync for OneThread {}

static INTERPRETER: OneThread = OneThread(UnsafeCell::new(None));

/// Starts the interpreter.
pub fn boot(seed: [u8; 32]) -> wasmtime::Result<()> {
    let engine = forever(Engine::new(&config())?);
    // SAFETY: the image was compiled by guest/aot and stays mapped and unchanged.
    let component = forever(unsafe { Component::deserialize_raw(engine, image::component())? });
    let linker = forever(Linker::<Data>::new(engine));
    let mut root = linker.root();
    root.func_wrap("fetch-url", |context: StoreContextMut<Data>, (url, offset, format): (WasmStr, u64, WasmStr)| {
        Ok((bounded(&context, &url)
            .and_then(|url| Ok(host::fetch_url(url, offset, bounded(&context, &format)?)))
            .unwrap_or_else(Err),))
    })?;
    root.func_wrap("call-tool", |context: StoreContextMut<Data>, (name, arguments): (WasmStr, WasmStr)| {
        Ok((bounded(&context, &name)
            .and_then(|name| Ok(host::call_tool(name, bounded(&context, &arguments)?)))
            .unwrap_or_else(Err),))
    })?;
    wcpod_wasi::add_to_linker(linker, component)?;
    let wasi = Wasi::new(Surroundings, seed, FILES, image::stdlib())
        .map_err(|error| wasmtime::format_err!("the standard library of the image: {error}"))?;
    let mut store = Store::new(engine, wasi);
    // Nothing is allocated by what the component passes: WASI reads it where it lies, and `bounded` does the rest.
    store.set_hostcall_fuel(usize::MAX);
    let instance = linker.instantiate(&mut store, component)?;
    let execute = instance.get_typed_func(&mut store, "execute")?;
    // SAFETY: one thread, and the host calls `Boot` before anything else.
    unsafe { *INTERPRETER.0.get() = Some(Interpreter { store, execute }) };
    Ok(())
}

/// A copy of an argument, or the error of one that is too long.
fn bounded(context: &StoreContextMut<Data>, argument: &WasmStr) -> Result<String, String> {
    let refused = |message: &str| format!(r#"{{"type":"ValueError","message":"{message}"}}"#);
    let text = argument.to_str(context).map_err(|_| refused("an argument is not text"))?;
    if text.len() > MAX_ARGUMENT_BYTES {
        return Err(refused(&format!(
            "an argument is too long: {} bytes, at most {MAX_ARGUMENT_BYTES} fit",
            text.len()
        )));
    }
    Ok(text.into_owned())
}

fn interpreter() -> Option<&'static mut Interpreter> {
    // SAFETY: one thread, and the host makes no second call during the first, so there is one reference at a time.
    unsafe { (*INTERPRETER.0.get()).as_mut() }
}

/// Runs code with the tools named one a line. Returns an encoded outcome, whatever happens.
pub fn execute(seed: [u8; 32], tools: &str, code: String) -> Vec<u8> {
    let Some(interpreter) = interpreter() else {
        return trapped("the interpreter was not started".into()).encode();
    };
    let tools = tools.lines().map(String::from).collect();
    interpreter.store.data_mut().reseed(seed);
    match interpreter.execute.call(&mut interpreter.store, (code, tools)) {
        Ok((Returned { exit_code, value },)) => returned(exit_code, value, interpreter.store.data()),
        Err(error) => match error.downcast_ref::<Exit>() {
            Some(exit) => returned(exit.code.into(), None, interpreter.store.data()),
            None => trapped(format!("{error:?}")),
        },
    }
    .encode()
}

fn trapped(reason: String) -> Outcome {
    Outcome { trapped: true, exit_code: 1, text: Some(reason), ..measured() }
}

fn returned(exit_code: i32, text: Option<String>, wasi: &Data) -> Outcome {
    let (files, file_bytes_left_out) = files_left(wasi);
    Outcome { exit_code, text, files, file_bytes_left_out, ..measured() }
}

/// What the linear memory saw.
fn measured() -> Outcome {
    Outcome { memory_denied: linear_memory::was_denied(), peak_memory: linear_memory::peak(), ..Outcome::default() }
}

/// The files below /output, or none and their size when they are too large to bring back.
fn files_left(wasi: &Data) -> (Files, u64) {
    let files = wasi.files();
    let left = files.left("/output");
    let bytes = left.iter().map(|file| outcome::file_bytes(&file.path, file.size)).sum();
    if bytes > outcome::MAX_FILE_BYTES {
        return (Files::new(), bytes);
    }
    let content = |file: &wcpod_wasi::vfs::Left| files.read(file.node, 0, file.size as usize).unwrap_or_default();
    (left.iter().map(|file| (String::from(&*file.path), content(file))).collect(), 0)
}

/// Places encoded files below /input. Returns how many.
pub fn place_inputs(files: &[u8]) -> Result<u64, String> {
    let wasi = interpreter().ok_or("the interpreter was not started")?.store.data_mut();
    let mut count = 0;
    for input in inputs::decode(files) {
        let (name, content) = input.map_err(|_| "malformed inputs")?;
        wasi.files_mut()
            .place("/input", name, content.to_vec(), clock::wall_clock_ns())
            .map_err(|error| format!("the input {name:?} cannot be placed: {error}"))?;
        count += 1;
    }
    Ok(count)
}
