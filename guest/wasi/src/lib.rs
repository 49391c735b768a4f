//! WASI 0.2 for a component that runs without an operating system.
//!
//! Everything the component can reach is in here and in memory: the standard streams go to a
//! [`Host`], time comes from it, random bytes come from a generator that the host seeds, files live
//! in a [`vfs`], and sockets are refused. An import that is not WASI's, or that Python's C library
//! never calls, traps with its name.
//!
//! The component is hostile. Nothing it passes makes a function here panic, and no allocation is
//! sized by it: strings and lists are read where they lie in its memory, and what they are copied
//! to is bounded by [`Limits`](vfs::Limits) or by a constant.
#![no_std]
#![deny(unsafe_code)]

extern crate alloc;

mod cli;
mod clocks;
mod filesystem;
mod poll;
mod random;
mod resources;
mod sockets;
mod streams;

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use wasmtime::StoreContextMut;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, Linker, ResourceTable};

pub use wcpod_vfs as vfs;

pub use cli::Exit;
use random::Random;
use vfs::{Archive, ArchiveError, Limits, Vfs};

/// Most resources (descriptors, streams, pollables) that a component may hold at once.
const RESOURCES: usize = 4096;

/// A standard stream that the component writes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// What the component cannot have without an outside.
pub trait Host: 'static {
    /// Takes bytes that the component wrote. They are not kept here: whatever must survive the
    /// component's end has to be out of the VM when this returns.
    fn write(&mut self, stream: Stream, bytes: &[u8]);

    /// Nanoseconds of a clock that never goes back.
    fn monotonic_ns(&mut self) -> u64;

    /// Nanoseconds since the Unix epoch.
    fn wall_clock_ns(&mut self) -> u64;

    /// Returns when `ns` nanoseconds have passed.
    fn sleep_ns(&mut self, ns: u64);
}

/// The state behind the imports: the data of a [`wasmtime::Store`].
pub struct Wasi<H> {
    host: H,
    random: Random,
    files: Vfs,
    table: ResourceTable,
}

impl<H: Host> Wasi<H> {
    /// A world with an empty `/input`, `/output` and `/tmp`, and the standard library of `archive`
    /// (which is indexed where it lies, never copied) below `/`.
    ///
    /// # Errors
    /// [`ArchiveError`] if `archive` is not one that `guest/component/build.py` made.
    pub fn new(host: H, seed: [u8; 32], limits: Limits, archive: &'static [u8]) -> Result<Self, ArchiveError> {
        let mut table = ResourceTable::new();
        table.set_max_capacity(RESOURCES);
        Ok(Self { host, random: Random::new(seed), files: Vfs::new(Archive::new(archive)?, limits), table })
    }

    /// Starts the random generator afresh. To be called after each restore, or two runs from one
    /// snapshot would draw the same bytes.
    pub fn reseed(&mut self, seed: [u8; 32]) {
        self.random = Random::new(seed);
    }

    /// The host side of the world.
    pub fn host_mut(&mut self) -> &mut H {
        &mut self.host
    }

    /// The file system, to read what the component left under `/output`.
    pub fn files(&self) -> &Vfs {
        &self.files
    }

    /// The file system, to place files under `/input` and to set limits.
    pub fn files_mut(&mut self) -> &mut Vfs {
        &mut self.files
    }
}

type Context<'a, H> = StoreContextMut<'a, Wasi<H>>;

/// Defines every WASI interface that `component` imports. Interfaces are matched by name without
/// the version, so that another `componentize-py` needs no change here; functions that nobody
/// calls, and interfaces that are not WASI's and not in the linker yet, trap with their name.
///
/// # Errors
/// An import is in the linker already.
pub fn add_to_linker<H: Host>(linker: &mut Linker<Wasi<H>>, component: &Component) -> wasmtime::Result<()> {
    let engine = linker.engine().clone();
    let interfaces: Vec<String> = component
        .component_type()
        .imports(&engine)
        .filter(|(_, import)| matches!(import.ty, ComponentItem::ComponentInstance(_)))
        .map(|(name, _)| name.to_string())
        .collect();
    for interface in &interfaces {
        let Some(name) = interface.strip_prefix("wasi:").and_then(|name| name.split('@').next()) else {
            continue;
        };
        let mut root = linker.root();
        let mut instance = root.instance(interface)?;
        resources::define(&mut instance, component, interface)?;
        match name.split_once('/') {
            Some(("cli", name)) => cli::define(&mut instance, name)?,
            Some(("clocks", name)) => clocks::define(&mut instance, name)?,
            Some(("filesystem", name)) => filesystem::define(&mut instance, name)?,
            Some(("io", "poll")) => poll::define(&mut instance)?,
            Some(("io", name)) => streams::define(&mut instance, name)?,
            Some(("random", name)) => random::define(&mut instance, name)?,
            Some(("sockets", name)) => sockets::define(&mut instance, name)?,
            _ => {}
        }
    }
    linker.define_unknown_imports_as_traps(component)
}
