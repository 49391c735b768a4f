//! What the host core and the guest agree on, each fact once: read by `hyperlight_bridge`, by the guest's workspace, by the
//! fuzz targets and by tests. `no_std`, without `unsafe`.
//!
//! | module | what |
//! |---|---|
//! | `layout` | fixed places in the guest's memory, Hyperlight's among them |
//! | `c_header` | the same for the C and the assembly of the shim |
//! | `function` | names of the guest functions and of the host functions |
//! | `interface` | version of all this, and the mark that an image carries |
//! | `abort` | codes with which a guest gives up |
//! | `output_window` | what a run prints: writer and reader |
//! | `outcome` | how a run that came back ended: encoder and decoder |
//! | `inputs` | files for a run: encoder and decoder |
//! | `reply` | what a host function answers: encoder and decoder |
//!
//! Whatever is decoded on the host's side is the guest's word: any bytes give a value or an error, never a panic.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test that cannot go on may panic"))]

extern crate alloc;

pub mod abort;
mod block;
pub mod c_header;
pub mod function;
pub mod inputs;
pub mod interface;
pub mod layout;
pub mod outcome;
pub mod output_window;
pub mod reply;

pub use block::Malformed;
