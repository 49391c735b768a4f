//! The three host functions, and what the component's WASI asks of its surroundings.
use alloc::format;
use alloc::string::String;

use guest_abi::function::host::{CALL_TOOL, FETCH_URL, SLEEP};
use guest_abi::reply;
use hyperlight_guest::error::Result;
use hyperlight_guest_bin::host_comm::call_host;
use wcpod_wasi::Stream;

use crate::{clock, output_window};

/// Shorter waits are spent here: a host call costs about as much.
const SPIN_NS: u64 = 200_000;

fn decoded(reply: Result<String>) -> core::result::Result<String, String> {
    match reply {
        Ok(text) => reply::decode(text)
            .unwrap_or_else(|| Err(String::from(r#"{"type":"ToolError","message":"the host gave no answer"}"#))),
        Err(error) => Err(format!(r#"{{"type":"ToolError","message":"host call failed: {:?}"}}"#, error.kind)),
    }
}

/// `fetch-url` of the component's world.
pub fn fetch_url(url: String, offset: u64, format: String) -> core::result::Result<String, String> {
    decoded(call_host(FETCH_URL, (url, offset, format)))
}

/// `call-tool` of the component's world.
pub fn call_tool(name: String, arguments: String) -> core::result::Result<String, String> {
    decoded(call_host(CALL_TOOL, (name, arguments)))
}

/// The component's surroundings.
pub struct Surroundings;

impl wcpod_wasi::Host for Surroundings {
    fn write(&mut self, stream: Stream, bytes: &[u8]) {
        output_window::write(stream == Stream::Stderr, bytes);
    }

    fn monotonic_ns(&mut self) -> u64 {
        clock::wall_clock_ns()
    }

    fn wall_clock_ns(&mut self) -> u64 {
        clock::wall_clock_ns()
    }

    fn sleep_ns(&mut self, ns: u64) {
        let end = clock::wall_clock_ns().saturating_add(ns);
        if ns > SPIN_NS {
            let _ = call_host::<u64>(SLEEP, (ns,));
        }
        while clock::wall_clock_ns() < end {
            core::hint::spin_loop();
        }
    }
}
