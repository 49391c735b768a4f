//! One run: what it is given, what it may use, and what became of it.
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use egress::AuditRecord;

use crate::output_window::Captured;
use crate::stop::Stop;

/// Limits of one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunLimits {
    /// Wall-clock time from the end of the restore on.
    pub wall: Duration,
    /// Memory of the interpreter, in bytes. At most what the sandbox was made for.
    pub memory_bytes: u64,
    /// Bytes kept of each output stream, half from its begin and half from its end.
    pub output_bytes: u64,
    /// Calls of host functions.
    pub host_calls: u32,
}

/// Files for /input: name and content.
pub type Inputs = Vec<(String, Vec<u8>)>;

/// What a run is given.
pub struct RunRequest {
    /// The source.
    pub code: String,
    /// Files for /input.
    pub inputs: Inputs,
    /// Its limits.
    pub limits: RunLimits,
    /// What answers its host calls.
    pub services: Arc<dyn HostServices>,
    /// Its stop signal, for the caller to keep.
    pub stop: Arc<Stop>,
}

/// What a tool reports instead of a value.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ToolError {
    /// Name of the exception's class.
    #[serde(rename = "type")]
    pub class: String,
    /// Its text.
    pub message: String,
}

/// What answers host calls. Called on threads of their own, which may be left behind.
pub trait HostServices: Send + Sync {
    /// Fetches a page: the JSON object for the guest and the record for the operator. `None` when the sandbox has no
    /// fetch policy.
    fn fetch_url(&self, url: String, offset: u64, format: String, deadline: Instant) -> Option<Fetched>;

    /// Calls a tool with JSON arguments. Returns a JSON value.
    ///
    /// # Errors
    /// What the tool raised.
    fn call_tool(&self, name: &str, arguments: &str, deadline: Instant) -> Result<String, ToolError>;

    /// Names of the tools, one a line.
    fn tool_names(&self) -> String;

    /// Who runs, for the audit records.
    fn agent(&self) -> Option<String> {
        None
    }

    /// A host call came to its end, however it did.
    fn call_ended(&self, record: &CallRecord);

    /// Whether [`Self::output`] is wanted.
    fn wants_output(&self) -> bool {
        false
    }

    /// The run printed `text`, a moment ago.
    fn output(&self, to_stderr: bool, text: &str) {
        let _ = (to_stderr, text);
    }
}

/// A page and its record.
pub struct Fetched {
    /// JSON object for the guest.
    pub page: String,
    /// Record for the operator.
    pub audit: AuditRecord,
}

/// How a host call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallStatus {
    /// With a value or a page.
    Ok,
    /// A rule refused it.
    Blocked,
    /// It failed.
    Error,
    /// The run's time was over first.
    Timeout,
    /// The run was given up first.
    Cancelled,
}

impl CallStatus {
    /// As the Python API spells it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Blocked => "blocked",
            Self::Error => "error",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
        }
    }
}

/// One call of the guest that reached the host.
#[derive(Debug, Clone)]
pub struct CallRecord {
    /// `fetch_url`, or the tool's name.
    pub name: String,
    /// How it ended.
    pub status: CallStatus,
    /// How long it took.
    pub duration: Duration,
    /// Why it is not ok.
    pub reason: Option<String>,
    /// What `fetch_url` did.
    pub fetch: Option<AuditRecord>,
}

/// The verdict on a run, made by the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The code came to its end with exit code 0.
    Ok,
    /// The code raised, or ended with another exit code.
    Error,
    /// Its time was over.
    Timeout,
    /// The caller gave it up.
    Cancelled,
    /// It needed more memory than its limit.
    Memory,
    /// It wrote far more than its output limit.
    Output,
    /// The guest ended in another way; `detail` says how.
    Crash,
}

impl Kind {
    /// As the Python API spells it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Memory => "memory",
            Self::Output => "output",
            Self::Crash => "crash",
        }
    }
}

/// What became of a run.
#[derive(Debug)]
pub struct RunReport {
    /// The verdict.
    pub kind: Kind,
    /// Exit code; 1 where the code did not come to its end.
    pub exit_code: i32,
    /// Standard output.
    pub stdout: Captured,
    /// Standard error.
    pub stderr: Captured,
    /// Text of the value of a last expression.
    pub value: Option<String>,
    /// What the code left below /output: path and content.
    pub files: Vec<(String, Vec<u8>)>,
    /// Host calls in the order in which they began.
    pub calls: Vec<CallRecord>,
    /// What the host knows about an end that was not the code's own.
    pub detail: Option<String>,
    /// Time from the end of the restore to the end of the run.
    pub duration: Duration,
    /// Time that the restore took.
    pub restore: Duration,
    /// Pages that were copied or made since the restore, tables included.
    pub dirtied_pages: u64,
    /// Largest size of the interpreter's memory, in bytes; 0 where it is not known.
    pub peak_memory: u64,
}

/// A run under way, as the host functions see it.
pub(crate) struct ActiveRun {
    pub services: Arc<dyn HostServices>,
    pub stop: Arc<Stop>,
    pub deadline: Instant,
    host_calls: u32,
    begun: AtomicU32,
    calls: Mutex<Vec<CallRecord>>,
}

impl ActiveRun {
    pub fn new(request: &RunRequest, deadline: Instant) -> Self {
        Self {
            services: Arc::clone(&request.services),
            stop: Arc::clone(&request.stop),
            deadline,
            host_calls: request.limits.host_calls,
            begun: AtomicU32::new(0),
            calls: Mutex::new(Vec::new()),
        }
    }

    /// Counts one more host call. `Err` holds the limit that it would exceed.
    pub fn begin_call(&self) -> Result<(), u32> {
        let before = self.begun.fetch_add(1, Ordering::Relaxed);
        if before < self.host_calls { Ok(()) } else { Err(self.host_calls) }
    }

    pub fn end_call(&self, record: CallRecord) {
        self.services.call_ended(&record);
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(record);
    }

    pub fn take_calls(&self) -> Vec<CallRecord> {
        std::mem::take(&mut *self.calls.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
