//! `in_process COMPONENT.wasm STDLIB ROUNDS`: the same component in this process, without a micro-VM. The baseline that the
//! benchmarks compare with: a fresh instance for each `print(1)`, and one that is used again. Prints times as JSON.
//!
//! Wasmtime at its best for this: guard pages, and memory images that are mapped copy-on-write.
use std::error::Error;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{env, fs, thread};

use wasmtime::component::{Component, ComponentType, InstancePre, Lift, Linker, TypedFunc};
use wasmtime::{Config, Engine, Store, StoreContextMut};
use wcpod_wasi::vfs::Limits;
use wcpod_wasi::{Host, Stream, Wasi, add_to_linker};

const CODE: &str = "print(1)";

/// Takes what is printed, and knows the time.
struct Surroundings {
    begin: Instant,
    printed: Vec<u8>,
}

impl Host for Surroundings {
    fn write(&mut self, _stream: Stream, bytes: &[u8]) {
        self.printed.extend_from_slice(bytes);
    }

    fn monotonic_ns(&mut self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }

    fn wall_clock_ns(&mut self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
    }

    fn sleep_ns(&mut self, ns: u64) {
        thread::sleep(Duration::from_nanos(ns));
    }
}

type Data = Wasi<Surroundings>;

/// The component's `outcome` record.
#[derive(ComponentType, Lift)]
#[component(record)]
struct Outcome {
    #[component(name = "exit-code")]
    exit_code: i32,
    #[expect(dead_code, reason = "part of the record")]
    value: Option<String>,
}

struct Interpreter {
    store: Store<Data>,
    execute: TypedFunc<(String, Vec<String>), (Outcome,)>,
}

impl Interpreter {
    fn new(component: &InstancePre<Data>, stdlib: &'static [u8]) -> Result<Self, Box<dyn Error>> {
        let surroundings = Surroundings { begin: Instant::now(), printed: Vec::new() };
        let wasi = Wasi::new(surroundings, [7; 32], Limits::default(), stdlib)?;
        let mut store = Store::new(component.engine(), wasi);
        store.set_hostcall_fuel(usize::MAX);
        let instance = component.instantiate(&mut store)?;
        let execute = instance.get_typed_func(&mut store, "execute")?;
        Ok(Self { store, execute })
    }

    fn run(&mut self) -> Result<(), Box<dyn Error>> {
        let (outcome,) = self.execute.call(&mut self.store, (CODE.into(), Vec::new()))?;
        let printed = std::mem::take(&mut self.store.data_mut().host_mut().printed);
        if outcome.exit_code != 0 || printed != b"1\n" {
            return Err(format!("exit code {}, printed {printed:?}", outcome.exit_code).into());
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    // CPython recurses on the native stack.
    let worker = thread::Builder::new().stack_size(64 << 20).spawn(|| measure().map_err(|error| error.to_string()))?;
    Ok(worker.join().map_err(|_| "the measurement panicked")??)
}

fn measure() -> Result<(), Box<dyn Error>> {
    let [_, component, stdlib, rounds] =
        env::args().collect::<Vec<_>>().try_into().map_err(|_| "usage: in_process COMPONENT.wasm STDLIB ROUNDS")?;
    let rounds: usize = rounds.parse()?;
    let mut config = Config::new();
    config.target("x86_64-unknown-linux-gnu")?;
    config.memory_init_cow(true);
    config.async_stack_size(40 << 20);
    config.max_wasm_stack(32 << 20);
    let engine = Engine::new(&config)?;
    let component = Component::new(&engine, fs::read(component)?)?;
    let stdlib: &'static [u8] = fs::read(stdlib)?.leak();
    let mut linker = Linker::<Data>::new(&engine);
    let mut root = linker.root();
    root.func_wrap("fetch-url", |_: StoreContextMut<Data>, _: (String, u64, String)| {
        Ok((Err::<String, _>(String::new()),))
    })?;
    root.func_wrap("call-tool", |_: StoreContextMut<Data>, _: (String, String)| {
        Ok((Err::<String, _>(String::new()),))
    })?;
    add_to_linker(&mut linker, &component)?;
    let component = linker.instantiate_pre(&component)?;

    let mut fresh = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let begin = Instant::now();
        Interpreter::new(&component, stdlib)?.run()?;
        fresh.push(begin.elapsed());
    }
    let mut warm = Vec::with_capacity(rounds);
    let mut interpreter = Interpreter::new(&component, stdlib)?;
    interpreter.run()?;
    for _ in 0..rounds {
        let begin = Instant::now();
        interpreter.run()?;
        warm.push(begin.elapsed());
    }
    println!("{{\"fresh\": {}, \"warm\": {}}}", seconds(&fresh), seconds(&warm));
    Ok(())
}

fn seconds(times: &[Duration]) -> String {
    let times: Vec<String> = times.iter().map(|time| format!("{:.9}", time.as_secs_f64())).collect();
    format!("[{}]", times.join(", "))
}
