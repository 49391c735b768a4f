//! The host core of wcpod: a Python interpreter in a Hyperlight micro-VM that starts every run from the same clean
//! snapshot and reaches the outside only through typed host functions.
//!
//! | module | what |
//! |---|---|
//! | `sandbox_thread` | a sandbox: the thread that owns a micro-VM, and its messages |
//! | `micro_vm` | restore, run, capture; what the last run left |
//! | `machine` | one virtual machine of Hyperlight |
//! | `boot` | from the image to the clean state |
//! | `snapshot`, `snapshot_cache`, `state_folder` | clean states, in memory, on disk, kept between processes |
//! | `prepared` | what the guest makes of a clean state before a run, written by the host |
//! | `page_tables` | whether a run left them as an honest guest does |
//! | `scratch` | the guest's scratch memory, reached from this process |
//! | `run` | one run: its limits, services, host calls, report |
//! | `guest_calls` | how a run is handed to the guest |
//! | `verdict` | how a run ended |
//! | `stop`, `watchdog`, `interrupt_signal` | why a run must end early, and how it is made to |
//! | `host_functions`, `tool_calls` | what the guest may call, and tools on their way to who answers |
//! | `events` | what a run does while it runs |
//! | `output_window` | what a run prints, and its outcome, read as hostile bytes (decoders: `guest_abi`) |
//! | `guest_image`, `hypervisor`, `clock` | the file that is booted, what it is booted on, the time it starts with |
//! | `fork_lock` | the one lock of the process |
//! | `error` | every way in which the sandbox itself can fail |
//! | `py` | the Python extension, the only code that knows Python |

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod boot;
pub mod clock;
pub mod error;
pub mod events;
mod fork_lock;
mod guest_calls;
pub mod guest_image;
mod host_functions;
pub mod hypervisor;
mod interrupt_signal;
mod machine;
pub mod micro_vm;
pub mod output_window;
mod page_tables;
mod prepared;
#[cfg(feature = "python")]
mod py;
pub mod run;
pub mod sandbox_thread;
mod scratch;
pub mod snapshot;
pub mod snapshot_cache;
mod state_folder;
pub mod stop;
pub mod tool_calls;
mod verdict;
mod watchdog;

pub use boot::StartTimes;
pub use error::BridgeError;
pub use events::{Event, Events};
pub use guest_image::GuestImage;
pub use hypervisor::Hypervisor;
pub use micro_vm::MicroVm;
pub use run::{CallRecord, CallStatus, Inputs, Kind, RunLimits, RunReport, RunRequest, Services, VmSize};
pub use sandbox_thread::{Message, SandboxThread};
pub use snapshot::Snapshot;
pub use snapshot_cache::SnapshotCache;
pub use stop::{Stop, StopReason};
pub use tool_calls::{ToolCall, ToolCalls, ToolError};
