//! `wasi:io/streams` and `wasi:io/error`: standard streams and files.
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use wasmtime::bail;
use wasmtime::component::{ComponentType, Lift, LinkerInstance, Lower, Resource, WasmList};

use crate::poll::Pollable;
use crate::vfs::{self, NodeId};
use crate::{Context, Host, Stream, Wasi};

/// What [`check-write`](define) allows at once. Python's unbuffered streams lose what a short write
/// leaves over, so there are none; nothing is allocated by this number.
const WRITE: u64 = 1 << 30;

/// Most bytes of one read: what the component's C library allocates for it, and so dirties.
pub(crate) const READ: u64 = 32 << 10;

/// Zeroes to write from.
static ZEROES: [u8; 4096] = [0; 4096];

/// Something to read from.
pub(crate) enum Input {
    /// Standard input: at its end from the start.
    Empty,
    File {
        node: NodeId,
        offset: u64,
    },
}

/// Something to write to.
#[derive(Clone, Copy)]
pub(crate) enum Output {
    Standard(Stream),
    File {
        node: NodeId,
        /// `None` appends.
        offset: Option<u64>,
    },
}

/// The `error` resource: why a stream operation failed.
pub(crate) struct Failure(pub(crate) vfs::Error);

#[derive(ComponentType, Lift, Lower)]
#[component(variant)]
pub(crate) enum StreamError {
    #[component(name = "last-operation-failed")]
    LastOperationFailed(Resource<Failure>),
    #[component(name = "closed")]
    Closed,
}

type Outcome<T> = wasmtime::Result<(Result<T, StreamError>,)>;

impl<H: Host> Wasi<H> {
    fn failure<T>(&mut self, error: vfs::Error) -> Outcome<T> {
        Ok((Err(StreamError::LastOperationFailed(self.table.push(Failure(error))?)),))
    }

    fn read(&mut self, input: &Resource<Input>, length: u64) -> Outcome<Vec<u8>> {
        let Input::File { node, offset } = self.table.get_mut(input)? else {
            return Ok((Err(StreamError::Closed),));
        };
        match self.files.read(*node, *offset, length.min(READ) as usize) {
            Ok(bytes) if bytes.is_empty() && length > 0 => Ok((Err(StreamError::Closed),)),
            Ok(bytes) => {
                *offset += bytes.len() as u64;
                Ok((Ok(bytes),))
            }
            Err(error) => self.failure(error),
        }
    }

    fn skip(&mut self, input: &Resource<Input>, length: u64) -> Outcome<u64> {
        let (bytes,) = self.read(input, length)?;
        Ok((bytes.map(|bytes| bytes.len() as u64),))
    }

    pub(crate) fn drop_input(&mut self, input: Resource<Input>) -> wasmtime::Result<()> {
        if let Input::File { node, .. } = self.table.delete(input)? {
            self.files.close(node);
        }
        Ok(())
    }

    pub(crate) fn drop_output(&mut self, output: Resource<Output>) -> wasmtime::Result<()> {
        if let Output::File { node, .. } = self.table.delete(output)? {
            self.files.close(node);
        }
        Ok(())
    }

    /// Writes to a file where the stream stands, and moves on.
    fn write_file(&mut self, output: &Resource<Output>, bytes: &[u8]) -> Outcome<()> {
        let Output::File { node, offset } = self.table.get_mut(output)? else {
            return Ok((Ok(()),));
        };
        let at = match *offset {
            Some(at) => at,
            None => self.files.size(*node),
        };
        let modified = self.host.wall_clock_ns();
        match self.files.write(*node, at, bytes, modified) {
            Ok(()) => {
                if let Some(offset) = offset {
                    *offset += bytes.len() as u64;
                }
                Ok((Ok(()),))
            }
            Err(error) => self.failure(error),
        }
    }
}

/// Passes on the bytes where they lie in the component's memory: a piece at a time, because a
/// borrow of that memory and one of the host exclude each other.
fn write<H: Host>(mut cx: Context<H>, output: &Resource<Output>, bytes: &WasmList<u8>) -> Outcome<()> {
    let target = *cx.data().table.get(output)?;
    let mut piece = [0; 4096];
    let mut start = 0;
    while start < bytes.len() {
        let rest = &bytes.as_le_slice(&cx)[start..];
        let length = rest.len().min(piece.len());
        piece[..length].copy_from_slice(&rest[..length]);
        match target {
            Output::Standard(stream) => cx.data_mut().host.write(stream, &piece[..length]),
            Output::File { .. } => {
                let (outcome,) = cx.data_mut().write_file(output, &piece[..length])?;
                if outcome.is_err() {
                    return Ok((outcome,));
                }
            }
        }
        start += length;
    }
    Ok((Ok(()),))
}

fn write_zeroes<H: Host>(mut cx: Context<H>, output: &Resource<Output>, length: u64) -> Outcome<()> {
    if length > WRITE {
        bail!("{length} zeroes at once are more than the {WRITE} allowed");
    }
    let target = *cx.data().table.get(output)?;
    let mut left = length;
    while left > 0 {
        let piece = &ZEROES[..left.min(ZEROES.len() as u64) as usize];
        match target {
            Output::Standard(stream) => cx.data_mut().host.write(stream, piece),
            Output::File { .. } => {
                let (outcome,) = cx.data_mut().write_file(output, piece)?;
                if outcome.is_err() {
                    return Ok((outcome,));
                }
            }
        }
        left -= piece.len() as u64;
    }
    Ok((Ok(()),))
}

pub(crate) fn define<H: Host>(instance: &mut LinkerInstance<'_, Wasi<H>>, name: &str) -> wasmtime::Result<()> {
    match name {
        "error" => define_error(instance),
        "streams" => {
            define_input(instance)?;
            define_output(instance)
        }
        _ => Ok(()),
    }
}

fn define_error<H: Host>(instance: &mut LinkerInstance<'_, Wasi<H>>) -> wasmtime::Result<()> {
    instance.func_wrap("[method]error.to-debug-string", |cx: Context<H>, (error,): (Resource<Failure>,)| {
        let text: String = cx.data().table.get(&error)?.0.to_string();
        Ok((text,))
    })
}

fn define_input<H: Host>(instance: &mut LinkerInstance<'_, Wasi<H>>) -> wasmtime::Result<()> {
    for method in ["read", "blocking-read"] {
        instance.func_wrap(
            &alloc::format!("[method]input-stream.{method}"),
            |mut cx: Context<H>, (input, length): (Resource<Input>, u64)| cx.data_mut().read(&input, length),
        )?;
    }
    for method in ["skip", "blocking-skip"] {
        instance.func_wrap(
            &alloc::format!("[method]input-stream.{method}"),
            |mut cx: Context<H>, (input, length): (Resource<Input>, u64)| cx.data_mut().skip(&input, length),
        )?;
    }
    instance.func_wrap("[method]input-stream.subscribe", |mut cx: Context<H>, _: (Resource<Input>,)| {
        cx.data_mut().pollable(Pollable::Now)
    })
}

fn define_output<H: Host>(instance: &mut LinkerInstance<'_, Wasi<H>>) -> wasmtime::Result<()> {
    type Target = Resource<Output>;
    instance.func_wrap("[method]output-stream.check-write", |_: Context<H>, _: (Target,)| {
        Ok((Ok::<_, StreamError>(WRITE),))
    })?;
    for method in ["write", "blocking-write-and-flush"] {
        instance.func_wrap(
            &alloc::format!("[method]output-stream.{method}"),
            |cx: Context<H>, (output, bytes): (Target, WasmList<u8>)| write(cx, &output, &bytes),
        )?;
    }
    for method in ["write-zeroes", "blocking-write-zeroes-and-flush"] {
        instance.func_wrap(
            &alloc::format!("[method]output-stream.{method}"),
            |cx: Context<H>, (output, length): (Target, u64)| write_zeroes(cx, &output, length),
        )?;
    }
    for method in ["flush", "blocking-flush"] {
        instance.func_wrap(&alloc::format!("[method]output-stream.{method}"), |_: Context<H>, _: (Target,)| {
            Ok((Ok::<_, StreamError>(()),))
        })?;
    }
    instance.func_wrap("[method]output-stream.subscribe", |mut cx: Context<H>, _: (Target,)| {
        cx.data_mut().pollable(Pollable::Now)
    })
}
