//! Every way in which the sandbox itself can fail. What the code inside does wrong is a [`RunReport`](crate::RunReport).
use std::io;
use std::path::PathBuf;

/// The sandbox could not do its job.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BridgeError {
    /// There is no `/dev/kvm`.
    #[error(
        "no hypervisor: {device} does not exist. wcpod needs Linux with KVM: load the module (modprobe kvm_intel or \
         kvm_amd), turn on virtualisation in the firmware, or, in a virtual machine, turn on nested virtualisation"
    )]
    NoHypervisor {
        /// The device that was looked for.
        device: PathBuf,
    },
    /// `/dev/kvm` is there but may not be opened.
    #[error(
        "no permission to use the hypervisor: {device} cannot be opened for reading and writing ({source}). {advice}"
    )]
    NoPermission {
        /// The device.
        device: PathBuf,
        /// What opening it said.
        source: io::Error,
        /// What to do, one sentence.
        advice: String,
    },
    /// The guest image cannot be read.
    #[error("the guest image {path} cannot be read ({source}). Build it with `make guest`, or install the wheel anew")]
    ImageUnreadable {
        /// The file.
        path: PathBuf,
        /// What reading it said.
        source: io::Error,
    },
    /// The guest image is not one of ours.
    #[error("{path} is not a wcpod guest image: {reason}. Build it with `make guest`, or install the wheel anew")]
    ImageInvalid {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The guest image was built for another version of this crate's guest interface or of Hyperlight.
    #[error("{path} is a guest image of another version: {reason}. Build it anew with `make guest`")]
    ImageVersion {
        /// The file.
        path: PathBuf,
        /// What does not match.
        reason: String,
    },
    /// The virtual machine could not be created, or the guest did not come up in it.
    #[error("the guest {path} did not start: {reason}. `wcpod doctor` tells more")]
    BootFailed {
        /// The file.
        path: PathBuf,
        /// What Hyperlight said.
        reason: String,
    },
    /// The guest's scratch memory was not found in this process, or cannot be read or written.
    #[error(
        "the guest's memory cannot be reached from this process: {reason}. /proc/self/maps must be readable, \
         /proc/self/mem readable and writable"
    )]
    OutputUnreadable {
        /// What was tried.
        reason: String,
    },
    /// A snapshot could not be taken.
    #[error("the clean snapshot could not be taken: {reason}")]
    SnapshotFailed {
        /// What Hyperlight said.
        reason: String,
    },
    /// A snapshot on disk cannot be used here.
    #[error("the snapshot in {path} is refused: {reason}")]
    SnapshotRefused {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The clean snapshot could not be brought back; the sandbox is of no more use.
    #[error("the clean snapshot could not be restored: {reason}. Make a new sandbox")]
    RestoreFailed {
        /// What Hyperlight said.
        reason: String,
    },
    /// The request does not fit through the transport to the guest.
    #[error("the code is too long: {bytes} bytes, at most {limit} fit")]
    CodeTooLong {
        /// Size of the code, in bytes.
        bytes: usize,
        /// Largest size, in bytes.
        limit: usize,
    },
    /// An input's name would not be a file below /input.
    #[error(
        "the input name {name:?} cannot be used: give a relative path without \".\", \"..\" or empty parts, each once"
    )]
    InputName {
        /// The name.
        name: String,
    },
    /// A part of the name of an input file is longer than the guest's file names.
    #[error("the input name \"{begin}…\" cannot be used: a part of it has more than {limit} bytes")]
    InputNameTooLong {
        /// The first characters of the name.
        begin: String,
        /// Longest part, in bytes.
        limit: usize,
    },
    /// An input file lies below another, which cannot be a folder too.
    #[error("the input name {name:?} cannot be used: {file:?} is a file")]
    InputBelowFile {
        /// The name.
        name: String,
        /// The name of the other.
        file: String,
    },
    /// The inputs are larger than what is handed over.
    #[error("the inputs are too large: {bytes} bytes together, at most {limit} fit")]
    InputsTooLarge {
        /// Size of all inputs, in bytes.
        bytes: usize,
        /// Largest size, in bytes.
        limit: usize,
    },
    /// The signal that ends a run would not.
    #[error(
        "a run could not be stopped: signal {signal}, which ends a run at its limit, is {what} in this process. Leave its \
         handler alone, or make a new sandbox, which sets it again"
    )]
    NoInterrupt {
        /// Its number.
        signal: i32,
        /// What the process does with it.
        what: &'static str,
    },
    /// The system gives no more threads.
    #[error("no thread could be started for the sandbox: {source}")]
    NoThread {
        /// What the system said.
        source: io::Error,
    },
    /// The sandbox was closed.
    #[error("this sandbox was closed")]
    Closed,
    /// The run waited for its turn until it was cancelled.
    #[error("the run was cancelled while it waited for its turn")]
    CancelledInLine,
    /// The run waited for its turn as long as it was to.
    #[error("the sandbox was in use for {seconds} s, and the run was not to wait longer for its turn")]
    NoTurn {
        /// The time that it waited, in seconds.
        seconds: f64,
    },
}
