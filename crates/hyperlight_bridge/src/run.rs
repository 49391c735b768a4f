//! One run: what it is given, what it may use, and how it ended.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use egress::{AuditLog, AuditRecord, FetchReply, FetchRequest};

use crate::events::Events;
use crate::output_window::Captured;
use crate::stop::{Stop, StopReason};
use crate::tool_calls::ToolCalls;

/// Longest name and longest reason in a record, in bytes.
const MAX_RECORD_TEXT: usize = 200;
/// Calls over its limit after which a run is ended.
pub(crate) const MOST_REFUSED: u64 = 1000;

/// How large a micro-VM is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VmSize {
    /// Most memory that a run's interpreter may have, in bytes.
    pub memory_bytes: u64,
}

/// Limits of one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunLimits {
    /// Wall-clock time from the end of the restore on.
    pub wall: Duration,
    /// Memory of the interpreter, in bytes. At most what the sandbox was made for.
    pub memory_bytes: u64,
    /// Bytes kept of each output stream: half of them the first, half the last.
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
    pub services: Services,
    /// Its stop signal, for the caller to keep.
    pub stop: Arc<Stop>,
}

/// Where pages come from: `egress::FetchSession`, but for tests.
pub trait Pages: Send + Sync {
    /// Fetches a page until `deadline`.
    fn fetch(&self, request: &FetchRequest, deadline: Instant) -> FetchReply;
}

impl Pages for egress::FetchSession {
    fn fetch(&self, request: &FetchRequest, deadline: Instant) -> FetchReply {
        Self::fetch(self, request, deadline)
    }
}

/// What answers host calls, and what hears of them.
#[derive(Clone, Default)]
pub struct Services {
    /// Answers `fetch_url`; without it there is no network.
    pub pages: Option<Arc<dyn Pages>>,
    /// Answers tools; without it there are none.
    pub tools: Option<Arc<ToolCalls>>,
    /// Who runs, for the audit records.
    pub agent: Option<String>,
    /// Gets a line for each fetch.
    pub audit: Option<Arc<AuditLog>>,
    /// Gets what happens while it happens.
    pub events: Option<Arc<Events>>,
}

impl Services {
    /// The run is over, or never began: the threads that serve it may go.
    pub fn end(&self) {
        if let Some(tools) = &self.tools {
            tools.end();
        }
        if let Some(events) = &self.events {
            events.close();
        }
    }
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
    /// The run's limit passed first.
    Timeout,
    /// The run was cancelled first.
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
    /// `fetch_url`, a tool's name, or [`UNKNOWN`](crate::host_functions::UNKNOWN).
    pub name: Arc<str>,
    /// How many calls this stands for: more than one only where calls over the limit were refused.
    pub count: u64,
    /// How it ended.
    pub status: CallStatus,
    /// How long it took.
    pub duration: Duration,
    /// Why it is not ok, bounded.
    pub reason: Option<String>,
    /// What `fetch_url` did.
    pub fetch: Option<AuditRecord>,
}

impl CallRecord {
    pub(crate) fn new(
        name: &str,
        status: CallStatus,
        duration: Duration,
        reason: Option<String>,
        fetch: Option<AuditRecord>,
    ) -> Self {
        let reason = reason.map(|text| cut(text, MAX_RECORD_TEXT));
        Self { name: cut(name.to_owned(), MAX_RECORD_TEXT).into(), count: 1, status, duration, reason, fetch }
    }
}

/// `text`, cut on a whole character to at most `most` bytes and a mark.
pub(crate) fn cut(mut text: String, most: usize) -> String {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
        text.push('…');
    }
    text
}

/// The verdict on a run, made by the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The code ended with exit code 0.
    Ok,
    /// The code raised, or ended with another exit code.
    Error,
    /// Its time limit passed.
    Timeout,
    /// The caller cancelled it.
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

/// How a run ended.
#[derive(Debug)]
pub struct RunReport {
    /// The verdict.
    pub kind: Kind,
    /// Exit code; 1 where the code did not end by itself.
    pub exit_code: i32,
    /// Standard output.
    pub stdout: Captured,
    /// Standard error.
    pub stderr: Captured,
    /// Text of the value of a last expression.
    pub value: Option<String>,
    /// What the code left below /output: path and content.
    pub files: Vec<(String, Vec<u8>)>,
    /// Host calls in the order in which they ended.
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
    /// What went wrong around the run without harming it, a sentence each, for the operator's log.
    pub survived: Vec<String>,
}

#[derive(Default)]
struct Calls {
    ended: Vec<CallRecord>,
    begun: u32,
    /// Calls over the limit, by name.
    refused: BTreeMap<Arc<str>, u64>,
}

/// A call would be one more than the run may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OverLimit {
    pub limit: u32,
    /// Whether it is the first of its name, which stands for all of them.
    pub is_first: bool,
}

/// A run under way, as the host functions see it.
pub(crate) struct ActiveRun {
    pub services: Services,
    pub stop: Arc<Stop>,
    pub deadline: Instant,
    host_calls: u32,
    calls: Mutex<Calls>,
    survived: Mutex<Vec<String>>,
}

/// What a run left with the host.
pub(crate) struct Ended {
    pub calls: Vec<CallRecord>,
    pub survived: Vec<String>,
}

impl ActiveRun {
    pub fn new(services: Services, stop: Arc<Stop>, deadline: Instant, host_calls: u32) -> Self {
        Self { services, stop, deadline, host_calls, calls: Mutex::default(), survived: Mutex::default() }
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one more host call. A run that goes on calling after its limit is ended.
    pub fn begin_call(&self, name: &Arc<str>) -> Result<(), OverLimit> {
        let mut calls = self.calls();
        if calls.begun < self.host_calls {
            calls.begun += 1;
            return Ok(());
        }
        let of_this_name = calls.refused.entry(Arc::clone(name)).or_default();
        *of_this_name += 1;
        let is_first = *of_this_name == 1;
        let refused: u64 = calls.refused.values().sum();
        drop(calls);
        if refused >= MOST_REFUSED {
            self.stop.request(StopReason::HostCalls);
        }
        Err(OverLimit { limit: self.host_calls, is_first })
    }

    /// After a wait in a host call: a run whose limit passed meanwhile has timed out, also if the guest ends by itself
    /// before it is interrupted.
    pub fn note_deadline(&self) {
        if Instant::now() >= self.deadline {
            self.stop.note(StopReason::TimedOut);
        }
    }

    pub fn end_call(&self, record: CallRecord) {
        if let (Some(audit), Some(fetch)) = (&self.services.audit, &record.fetch)
            && let Err(error) = audit.append(fetch)
        {
            self.survived.lock().unwrap_or_else(PoisonError::into_inner).push(error.to_string());
        }
        if let Some(events) = &self.services.events {
            events.call_ended(&record);
        }
        self.calls().ended.push(record);
    }

    /// Records of all calls; the last of a name that has calls over the limit stands for these.
    pub fn end(&self) -> Ended {
        let mut calls = std::mem::take(&mut *self.calls());
        for (name, count) in calls.refused {
            if let Some(record) = calls.ended.iter_mut().rfind(|record| record.name == name) {
                record.count = count;
            }
        }
        let survived = std::mem::take(&mut *self.survived.lock().unwrap_or_else(PoisonError::into_inner));
        Ended { calls: calls.ended, survived }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(host_calls: u32) -> ActiveRun {
        ActiveRun::new(Services::default(), Arc::default(), Instant::now(), host_calls)
    }

    #[test]
    fn texts_are_cut_on_whole_characters() {
        assert_eq!(cut("世界".into(), 4), "世…");
        assert_eq!(cut("世界".into(), 6), "世界");
        let record =
            CallRecord::new(&"n".repeat(60_000), CallStatus::Error, Duration::ZERO, Some("r".repeat(999)), None);
        assert!(record.name.len() <= 203 && record.reason.unwrap().len() <= 203);
    }

    #[test]
    fn a_run_that_goes_on_after_its_limit_is_ended() {
        let (run, name): (_, Arc<str>) = (run(2), "tool".into());
        let over = |is_first| Err(OverLimit { limit: 2, is_first });
        let begun = [run.begin_call(&name), run.begin_call(&name), run.begin_call(&name), run.begin_call(&name)];
        assert_eq!(begun, [Ok(()), Ok(()), over(true), over(false)]);
        assert_eq!(run.begin_call(&"other".into()), over(true));
        for _ in 3..MOST_REFUSED {
            assert_eq!(run.stop.reason(), None);
            assert_eq!(run.begin_call(&name), over(false));
        }
        assert_eq!(run.stop.reason(), Some(StopReason::HostCalls));
    }
}
