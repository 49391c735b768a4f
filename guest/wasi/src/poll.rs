//! `wasi:io/poll`: everything is ready at once, except a time that has not come yet.
use alloc::vec::Vec;

use wasmtime::bail;
use wasmtime::component::{LinkerInstance, Resource, WasmList};

use crate::{Context, Host, Wasi};

/// Most pollables in one call.
const POLLED: usize = 1024;

/// When a pollable is ready.
#[derive(Clone, Copy)]
pub(crate) enum Pollable {
    Now,
    /// On the monotonic clock, in nanoseconds.
    At(u64),
}

impl Pollable {
    fn remaining(self, now: u64) -> u64 {
        match self {
            Self::Now => 0,
            Self::At(time) => time.saturating_sub(now),
        }
    }
}

impl<H: Host> Wasi<H> {
    pub(crate) fn pollable(&mut self, pollable: Pollable) -> wasmtime::Result<(Resource<Pollable>,)> {
        Ok((self.table.push(pollable)?,))
    }

    /// Sleeps until the earliest of the pollables is ready, and says which are.
    fn poll(&mut self, pollables: &[Pollable]) -> Vec<u32> {
        let mut now = self.host.monotonic_ns();
        let earliest = pollables.iter().map(|pollable| pollable.remaining(now)).min().unwrap_or(0);
        if earliest > 0 {
            self.host.sleep_ns(earliest);
            // A host that wakes early must not make the component spin.
            now = self.host.monotonic_ns().max(now.saturating_add(earliest));
        }
        (0u32..).zip(pollables).filter(|(_, pollable)| pollable.remaining(now) == 0).map(|(index, _)| index).collect()
    }
}

pub(crate) fn define<H: Host>(instance: &mut LinkerInstance<'_, Wasi<H>>) -> wasmtime::Result<()> {
    instance.func_wrap("[method]pollable.ready", |mut cx: Context<H>, (pollable,): (Resource<Pollable>,)| {
        let wasi = cx.data_mut();
        let pollable = *wasi.table.get(&pollable)?;
        Ok((pollable.remaining(wasi.host.monotonic_ns()) == 0,))
    })?;
    instance.func_wrap("[method]pollable.block", |mut cx: Context<H>, (pollable,): (Resource<Pollable>,)| {
        let wasi = cx.data_mut();
        let pollable = *wasi.table.get(&pollable)?;
        wasi.poll(&[pollable]);
        Ok(())
    })?;
    instance.func_wrap("poll", |mut cx: Context<H>, (list,): (WasmList<Resource<Pollable>>,)| {
        if list.len() == 0 || list.len() > POLLED {
            bail!("poll of {} pollables: from 1 to {POLLED} are allowed", list.len());
        }
        let mut pollables = Vec::with_capacity(list.len());
        for index in 0..list.len() {
            if let Some(pollable) = list.get(&mut cx, index) {
                let pollable = pollable?;
                pollables.push(*cx.data().table.get(&pollable)?);
            }
        }
        Ok((cx.data_mut().poll(&pollables),))
    })
}
