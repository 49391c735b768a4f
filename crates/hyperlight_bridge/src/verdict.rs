//! The verdict on a run, and its output as text.
use guest_abi::abort::Abort;
use guest_abi::outcome::Outcome;
use hyperlight_host::HyperlightError;

use crate::output_window::Captured;
use crate::run::{Kind, RunReport, cut};
use crate::stop::StopReason;

/// Longest detail, in bytes: it may hold what the guest said.
const MAX_DETAIL: usize = 2000;

/// Said of every end that is not the code's own: its files were not brought back.
const FILES_DROPPED: &str = "; any files below /output were dropped";

/// The host's word on how a run ended.
pub(crate) struct Verdict {
    pub kind: Kind,
    pub exit_code: i32,
    pub value: Option<String>,
    pub files: Vec<(String, Vec<u8>)>,
    pub detail: Option<String>,
    pub peak_memory: u64,
    /// Whether the interpreter is still alive.
    pub alive: bool,
}

impl Verdict {
    fn ended(kind: Kind, detail: &str) -> Self {
        let detail = Some(cut(detail.to_owned(), MAX_DETAIL) + FILES_DROPPED);
        Self { kind, exit_code: 1, value: None, files: Vec::new(), detail, peak_memory: 0, alive: false }
    }
}

/// The verdict: from what the host did and saw, never from what the guest claims about limits. Whatever comes back from a
/// guest has one.
pub(crate) fn judge(called: Result<Vec<u8>, HyperlightError>, stopped: Option<StopReason>) -> Verdict {
    match called {
        Ok(record) => {
            let malformed = |_| Verdict::ended(Kind::Crash, "the guest answered with a malformed outcome");
            let verdict = Outcome::decode(&record).map_or_else(malformed, of_outcome);
            // A guest that was told to end may do so by itself before it is interrupted.
            match stopped {
                Some(_) => Verdict { files: verdict.files, peak_memory: verdict.peak_memory, ..of_stop(stopped) },
                None => verdict,
            }
        }
        Err(HyperlightError::ExecutionCanceledByHost()) => of_stop(stopped),
        Err(HyperlightError::GuestAborted(code, message)) => {
            let kind = match Abort::of_code(code) {
                Some(Abort::OutOfScratch) => Kind::Memory,
                Some(Abort::OutputLimit) => Kind::Output,
                Some(Abort::Exception) | None => Kind::Crash,
            };
            Verdict::ended(kind, &message)
        }
        // An answer of the wrong type holds all of it in its text.
        Err(error) => Verdict::ended(Kind::Crash, &error.to_string()),
    }
}

fn of_stop(reason: Option<StopReason>) -> Verdict {
    match reason {
        Some(StopReason::Cancelled) => Verdict::ended(Kind::Cancelled, "the caller cancelled the run"),
        Some(StopReason::Output) => Verdict::ended(Kind::Output, "the run printed far more than its output limit"),
        Some(StopReason::HostCalls) => {
            Verdict::ended(Kind::Crash, "the run went on calling host functions long after its limit of host calls")
        }
        Some(StopReason::Intruded) => Verdict::ended(Kind::Crash, "the guest called a function that is not for it"),
        Some(StopReason::TimedOut) | None => Verdict::ended(Kind::Timeout, "the run was stopped at its time limit"),
    }
}

fn of_outcome(outcome: Outcome) -> Verdict {
    let kind = match (outcome.trapped, outcome.memory_denied, outcome.exit_code) {
        (false, _, 0) => Kind::Ok,
        (_, true, _) => Kind::Memory,
        (true, ..) => Kind::Crash,
        (false, ..) => Kind::Error,
    };
    let (value, detail) = match (outcome.trapped, outcome.file_bytes_left_out) {
        (true, _) => (None, Some(cut(outcome.text.unwrap_or_default(), MAX_DETAIL) + FILES_DROPPED)),
        (false, 0) => (outcome.text, None),
        (false, bytes) => (
            outcome.text,
            Some(format!("the files below /output were left out: {bytes} bytes are too many to bring back")),
        ),
    };
    Verdict {
        kind,
        exit_code: outcome.exit_code,
        value,
        files: outcome.files,
        detail,
        peak_memory: outcome.peak_memory,
        alive: !outcome.trapped,
    }
}

impl RunReport {
    /// Text of a stream: head, a note about what is missing, tail, cut on whole characters.
    #[must_use]
    pub fn text_of(stream: &Captured) -> String {
        let head = lossless_prefix(&stream.head, !stream.tail.is_empty() && stream.omitted() > 0);
        if stream.omitted() == 0 {
            let whole = [stream.head.as_slice(), &stream.tail].concat();
            return String::from_utf8_lossy(&whole).into_owned();
        }
        let skip = stream.tail.iter().take(3).take_while(|&&byte| byte & 0xc0 == 0x80).count();
        let tail = String::from_utf8_lossy(&stream.tail[skip..]);
        format!("{head}\n[... {} of {} bytes left out ...]\n{tail}", stream.omitted(), stream.written)
    }
}

/// The text of `bytes`; when `cut`, without the begin of a character that the cut went through.
fn lossless_prefix(bytes: &[u8], cut: bool) -> std::borrow::Cow<'_, str> {
    if cut
        && let Err(error) = std::str::from_utf8(bytes)
        && error.error_len().is_none()
    {
        return String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
    }
    String::from_utf8_lossy(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(trapped: bool, memory_denied: bool, exit_code: i32) -> Vec<u8> {
        Outcome { trapped, memory_denied, exit_code, ..Outcome::default() }.encode()
    }

    fn kind(called: Result<Vec<u8>, HyperlightError>, stopped: Option<StopReason>) -> &'static str {
        judge(called, stopped).kind.as_str()
    }

    #[test]
    fn the_verdict_follows_what_the_host_saw() {
        assert_eq!(kind(Ok(record(false, false, 0)), None), "ok");
        assert_eq!(kind(Ok(record(false, false, 3)), None), "error");
        assert_eq!(kind(Ok(record(false, true, 1)), None), "memory");
        assert_eq!(kind(Ok(record(false, true, 0)), None), "ok");
        assert_eq!(kind(Ok(record(true, false, 1)), None), "crash");
        assert_eq!(kind(Ok(vec![9]), None), "crash");
        // It ended by itself, but was told to.
        assert_eq!(kind(Ok(record(false, false, 1)), Some(StopReason::TimedOut)), "timeout");
        assert_eq!(kind(Ok(record(false, false, 0)), Some(StopReason::HostCalls)), "crash");
        assert_eq!(kind(Err(HyperlightError::ExecutionCanceledByHost()), Some(StopReason::TimedOut)), "timeout");
        assert_eq!(kind(Err(HyperlightError::ExecutionCanceledByHost()), Some(StopReason::Cancelled)), "cancelled");
        let aborted = |code: u8| Err(HyperlightError::GuestAborted(code, "whatever it says".into()));
        assert_eq!(kind(aborted(Abort::OutOfScratch.code()), None), "memory");
        assert_eq!(kind(aborted(Abort::OutputLimit.code()), None), "output");
        assert_eq!(kind(aborted(Abort::Exception.code()), None), "crash");
        assert_eq!(kind(aborted(0), None), "crash");
        assert_eq!(kind(Err(HyperlightError::ExecutionCanceledByHost()), Some(StopReason::HostCalls)), "crash");
        assert_eq!(kind(Err(HyperlightError::ExecutionCanceledByHost()), Some(StopReason::Output)), "output");
    }

    #[test]
    fn whatever_comes_back_is_a_verdict_and_short() {
        let verdict = judge(Err(HyperlightError::Error("[7, 7, 7] ".repeat(1 << 20))), None);
        assert_eq!(verdict.kind, Kind::Crash);
        assert!(verdict.detail.unwrap().len() < MAX_DETAIL + 10 + FILES_DROPPED.len());
    }

    #[test]
    fn a_cut_stream_says_so_on_whole_characters() {
        let text = "世".repeat(10);
        let stream =
            Captured { head: text.as_bytes()[..10].to_vec(), tail: text.as_bytes()[20..].to_vec(), written: 30 };
        assert_eq!(RunReport::text_of(&stream), "世世世\n[... 10 of 30 bytes left out ...]\n世世世");
        let whole =
            Captured { head: text.as_bytes()[..10].to_vec(), tail: text.as_bytes()[10..].to_vec(), written: 30 };
        assert_eq!(RunReport::text_of(&whole), text);
    }
}
