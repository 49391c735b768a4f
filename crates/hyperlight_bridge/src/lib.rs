//! The host core of wcpod: a Python interpreter in a Hyperlight micro-VM that starts every run from the same clean
//! snapshot and reaches the outside only through two typed host functions.
//!
//! | module | what |
//! |---|---|
//! | `hypervisor` | is there a usable one, and which |
//! | `guest_image` | the file that the micro-VM boots |
//! | `micro_vm` | boot, snapshot, restore, run |
//! | `run` | one run: its limits, services, host calls, verdict |
//! | `stop` | why a run must end early, and waiting that ends with it |
//! | `watchdog` | the thread that interrupts a run |
//! | `host_functions` | what the guest may call |
//! | `outcome`, `output_window` | what comes out of the guest, decoded as hostile bytes |
//! | `clock` | the time that a run starts with |
//! | `error` | every way in which the sandbox itself can fail |
//! | `py` | the Python extension, the only code that knows Python |

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod clock;
pub mod error;
pub mod guest_image;
mod host_functions;
pub mod hypervisor;
pub mod micro_vm;
pub mod outcome;
pub mod output_window;
#[cfg(feature = "python")]
mod py;
pub mod run;
pub mod stop;
mod watchdog;

pub use error::BridgeError;
pub use guest_image::GuestImage;
pub use hypervisor::Hypervisor;
pub use micro_vm::{Isolation, MicroVm, VmSize};
pub use run::{CallRecord, CallStatus, HostServices, Inputs, Kind, RunLimits, RunReport, RunRequest, ToolError};
pub use stop::{Stop, StopReason};
