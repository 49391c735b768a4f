//! `wasi:random`: ChaCha20, seeded by the host.
use alloc::vec;
use alloc::vec::Vec;

use chacha20::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use wasmtime::bail;
use wasmtime::component::LinkerInstance;

use crate::{Context, Host, Wasi};

/// Most bytes of one request; Python's C library asks for 256 at a time.
const REQUEST: u64 = 64 << 10;

pub(crate) struct Random(ChaCha20Rng);

impl Random {
    pub(crate) fn new(seed: [u8; 32]) -> Self {
        Self(ChaCha20Rng::from_seed(seed))
    }

    fn bytes(&mut self, length: u64) -> wasmtime::Result<Vec<u8>> {
        if length > REQUEST {
            bail!("{length} random bytes at once are more than the {REQUEST} allowed");
        }
        let mut bytes = vec![0; length as usize];
        self.0.fill_bytes(&mut bytes);
        Ok(bytes)
    }
}

pub(crate) fn define<H: Host>(instance: &mut LinkerInstance<'_, Wasi<H>>, name: &str) -> wasmtime::Result<()> {
    match name {
        "random" => {
            instance.func_wrap("get-random-bytes", |mut cx: Context<H>, (length,): (u64,)| {
                Ok((cx.data_mut().random.bytes(length)?,))
            })?;
            instance.func_wrap("get-random-u64", |mut cx: Context<H>, (): ()| Ok((cx.data_mut().random.0.next_u64(),)))
        }
        "insecure" => {
            instance.func_wrap("get-insecure-random-bytes", |mut cx: Context<H>, (length,): (u64,)| {
                Ok((cx.data_mut().random.bytes(length)?,))
            })?;
            instance.func_wrap("get-insecure-random-u64", |mut cx: Context<H>, (): ()| {
                Ok((cx.data_mut().random.0.next_u64(),))
            })
        }
        "insecure-seed" => instance.func_wrap("insecure-seed", |mut cx: Context<H>, (): ()| {
            let random = &mut cx.data_mut().random.0;
            Ok(((random.next_u64(), random.next_u64()),))
        }),
        _ => Ok(()),
    }
}
