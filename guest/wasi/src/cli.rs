//! `wasi:cli`: a name and no further arguments, a home, no terminal, and an end that the embedder can tell
//! from a trap.
use alloc::string::String;
use alloc::vec;
use core::fmt;

use wasmtime::component::{LinkerInstance, Resource};

use crate::streams::{Input, Output};
use crate::{Context, Host, Stream, Wasi};

/// The error of a component that ended itself with `exit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// What it asked to be its exit code.
    pub code: u8,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the component exited with code {}", self.code)
    }
}

impl core::error::Error for Exit {}

/// The component's home directory, the only thing in its environment.
const HOME: &str = "/tmp";

/// What the component finds as its own name: no CPython program has none, and `argparse` counts on it.
const PROGRAM: &str = "main.py";

/// A terminal; none is ever handed out.
pub(crate) struct Terminal;

pub(crate) fn define<H: Host>(instance: &mut LinkerInstance<'_, Wasi<H>>, name: &str) -> wasmtime::Result<()> {
    match name {
        "environment" => {
            instance.func_wrap("get-environment", |_: Context<H>, (): ()| Ok((vec![("HOME", HOME)],)))?;
            instance.func_wrap("get-arguments", |_: Context<H>, (): ()| Ok((vec![PROGRAM],)))?;
            instance.func_wrap("initial-cwd", |_: Context<H>, (): ()| Ok((None::<String>,)))
        }
        "exit" => {
            instance.func_wrap("exit", |_: Context<H>, (status,): (Result<(), ()>,)| -> wasmtime::Result<()> {
                Err(Exit { code: status.is_err().into() }.into())
            })?;
            instance.func_wrap("exit-with-code", |_: Context<H>, (code,): (u8,)| -> wasmtime::Result<()> {
                Err(Exit { code }.into())
            })
        }
        "stdin" => instance
            .func_wrap("get-stdin", |mut cx: Context<H>, (): ()| Ok((cx.data_mut().table.push(Input::Empty)?,))),
        "stdout" => instance.func_wrap("get-stdout", |mut cx: Context<H>, (): ()| {
            Ok((cx.data_mut().table.push(Output::Standard(Stream::Stdout))?,))
        }),
        "stderr" => instance.func_wrap("get-stderr", |mut cx: Context<H>, (): ()| {
            Ok((cx.data_mut().table.push(Output::Standard(Stream::Stderr))?,))
        }),
        "terminal-stdin" => no_terminal(instance, "get-terminal-stdin"),
        "terminal-stdout" => no_terminal(instance, "get-terminal-stdout"),
        "terminal-stderr" => no_terminal(instance, "get-terminal-stderr"),
        _ => Ok(()),
    }
}

fn no_terminal<H: Host>(instance: &mut LinkerInstance<'_, Wasi<H>>, function: &str) -> wasmtime::Result<()> {
    instance.func_wrap(function, |_: Context<H>, (): ()| Ok((None::<Resource<Terminal>>,)))
}
