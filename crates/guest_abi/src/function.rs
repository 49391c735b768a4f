//! Names of the functions that host and guest call by name.

/// What the host calls in the guest.
pub mod guest {
    /// Starts the interpreter, once. Arguments: nanoseconds since the epoch, ticks of the time-stamp counter a second, four
    /// words of seed. Returns the privilege ring that everything but the shim runs in ([`RING_0`](crate::layout::RING_0) or
    /// [`RING_3`](crate::layout::RING_3)).
    pub const BOOT: &str = "Boot";
    /// Runs code. Arguments: run id, nanoseconds since the epoch, ticks a second, four words of seed, bytes of memory, bytes
    /// of output, names of the tools one a line, code. Returns the length of the encoded outcome in the output window.
    pub const EXECUTE: &str = "Execute";
    /// Places files below /input for the run that follows. Argument: encoded inputs. Returns how many.
    pub const PLACE_INPUTS: &str = "PlaceInputs";
    /// After a rehearsal in a restored state: keeps the pages that it touched as those to prepare after every restore.
    /// Returns how many are copied.
    pub const KEEP_TOUCHED: &str = "KeepTouched";
}

/// What the guest calls in the host.
pub mod host {
    /// Arguments: URL, offset into the text, format. Returns a reply.
    pub const FETCH_URL: &str = "FetchUrl";
    /// Arguments: name, JSON of the arguments. Returns a reply.
    pub const CALL_TOOL: &str = "CallTool";
    /// Waits. Argument: nanoseconds. Returns them.
    pub const SLEEP: &str = "Sleep";
}
