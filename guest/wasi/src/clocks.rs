//! `wasi:clocks`: the host's clocks.
use wasmtime::component::{ComponentType, Lift, LinkerInstance, Lower};

use crate::poll::Pollable;
use crate::{Context, Host, Wasi};

const SECOND: u64 = 1_000_000_000;

/// `wasi:clocks/wall-clock.datetime`: a time since the Unix epoch.
#[derive(ComponentType, Lift, Lower, Clone, Copy)]
#[component(record)]
pub(crate) struct Datetime {
    seconds: u64,
    nanoseconds: u32,
}

impl Datetime {
    pub(crate) fn from_ns(ns: u64) -> Self {
        Self { seconds: ns / SECOND, nanoseconds: (ns % SECOND) as u32 }
    }

    pub(crate) fn to_ns(self) -> u64 {
        self.seconds.saturating_mul(SECOND).saturating_add(self.nanoseconds.into())
    }
}

pub(crate) fn define<H: Host>(instance: &mut LinkerInstance<'_, Wasi<H>>, name: &str) -> wasmtime::Result<()> {
    match name {
        "monotonic-clock" => {
            instance.func_wrap("now", |mut cx: Context<H>, (): ()| Ok((cx.data_mut().host.monotonic_ns(),)))?;
            instance.func_wrap("resolution", |_: Context<H>, (): ()| Ok((1u64,)))?;
            instance.func_wrap("subscribe-duration", |mut cx: Context<H>, (duration,): (u64,)| {
                let wasi = cx.data_mut();
                let time = wasi.host.monotonic_ns().saturating_add(duration);
                wasi.pollable(Pollable::At(time))
            })?;
            instance.func_wrap("subscribe-instant", |mut cx: Context<H>, (time,): (u64,)| {
                cx.data_mut().pollable(Pollable::At(time))
            })
        }
        "wall-clock" => {
            instance.func_wrap("now", |mut cx: Context<H>, (): ()| {
                Ok((Datetime::from_ns(cx.data_mut().host.wall_clock_ns()),))
            })?;
            instance.func_wrap("resolution", |_: Context<H>, (): ()| Ok((Datetime::from_ns(1),)))
        }
        _ => Ok(()),
    }
}
