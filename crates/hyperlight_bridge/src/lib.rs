//! The host core of wcpod: a Python interpreter in a Hyperlight micro-VM that starts every run from the same clean
//! snapshot and reaches the outside only through two typed host functions.
//!
//! | module | what |
//! |---|---|
//! | `hypervisor` | is there a usable one, and which |
//! | `guest_image` | the file that the micro-VM boots |
//! | `boot` | from the image to the clean state |
//! | `snapshot`, `snapshot_cache` | clean states, in memory, on disk, kept between processes |
//! | `prepared` | what the guest makes of a clean state before a run, written by the host |
//! | `page_tables` | whether a run left them as an honest guest does |
//! | `micro_vm` | restore, run, capture |
//! | `verdict` | how a run ended |
//! | `run` | one run: its limits, services, host calls, verdict |
//! | `stop` | why a run must end early, and waiting that ends with it |
//! | `watchdog` | the thread that interrupts a run |
//! | `host_functions` | what the guest may call |
//! | `outcome`, `output_window`, `output_follower` | what comes out of the guest, decoded as hostile bytes |
//! | `scratch` | the guest's scratch memory, reached from this process |
//! | `clock` | the time that a run starts with |
//! | `error` | every way in which the sandbox itself can fail |
//! | `py` | the Python extension, the only code that knows Python |

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod boot;
pub mod clock;
pub mod error;
pub mod guest_image;
mod host_functions;
pub mod hypervisor;
pub mod micro_vm;
pub mod outcome;
mod output_follower;
pub mod output_window;
mod page_tables;
mod prepared;
#[cfg(feature = "python")]
mod py;
pub mod run;
mod scratch;
pub mod snapshot;
pub mod snapshot_cache;
pub mod stop;
mod verdict;
mod watchdog;

pub use boot::StartTimes;
pub use error::BridgeError;
pub use guest_image::GuestImage;
pub use hypervisor::Hypervisor;
pub use micro_vm::{MicroVm, VmSize};
pub use run::{CallRecord, CallStatus, HostServices, Inputs, Kind, RunLimits, RunReport, RunRequest, ToolError};
pub use snapshot::Snapshot;
pub use snapshot_cache::SnapshotCache;
pub use stop::{Stop, StopReason};
