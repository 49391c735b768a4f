//! The verdict on a run, and its output as text.
use hyperlight_host::HyperlightError;

use crate::error::BridgeError;
use crate::outcome::Outcome;
use crate::output_window::Captured;
use crate::run::{Kind, RunReport};
use crate::stop::StopReason;

/// The host's word on how a run ended.
pub(crate) struct Verdict {
    pub kind: Kind,
    pub exit_code: i32,
    pub value: Option<String>,
    pub files: Vec<(String, Vec<u8>)>,
    pub detail: Option<String>,
    pub peak_memory: u64,
}

impl Verdict {
    fn ended(kind: Kind, detail: String) -> Self {
        Self { kind, exit_code: 1, value: None, files: Vec::new(), detail: Some(detail), peak_memory: 0 }
    }
}

/// The verdict: from what the host did and saw, never from what the guest claims about limits.
pub(crate) fn judge(
    called: Result<Vec<u8>, HyperlightError>,
    stopped: Option<StopReason>,
) -> Result<Verdict, BridgeError> {
    let record = match called {
        Ok(record) => record,
        Err(HyperlightError::ExecutionCanceledByHost()) => {
            return Ok(match stopped {
                Some(StopReason::Cancelled) => Verdict::ended(Kind::Cancelled, "the caller gave the run up".into()),
                _ => Verdict::ended(Kind::Timeout, "the run's wall-clock limit was over".into()),
            });
        }
        Err(HyperlightError::GuestAborted(_, message)) => {
            let kind = if message.starts_with("out of scratch memory") {
                Kind::Memory
            } else if message.starts_with("output limit") {
                Kind::Output
            } else {
                Kind::Crash
            };
            return Ok(Verdict::ended(kind, message));
        }
        Err(error) if is_guests_fault(&error) => {
            return Ok(Verdict::ended(Kind::Crash, error.to_string()));
        }
        Err(error) => {
            return Err(BridgeError::CallFailed { reason: error.to_string() });
        }
    };
    let Ok(outcome) = Outcome::decode(&record) else {
        return Ok(Verdict::ended(Kind::Crash, "the guest answered with a malformed outcome".into()));
    };
    let kind = match (outcome.trapped, outcome.memory_denied, outcome.exit_code) {
        (false, _, 0) => Kind::Ok,
        (_, true, _) => Kind::Memory,
        (true, ..) => Kind::Crash,
        (false, ..) => Kind::Error,
    };
    let (value, detail) = match (outcome.trapped, outcome.file_bytes_left_out) {
        (true, _) => (None, outcome.text),
        (false, 0) => (outcome.text, None),
        (false, bytes) => (
            outcome.text,
            Some(format!("the files below /output were left out: {bytes} bytes are too many to bring back")),
        ),
    };
    Ok(Verdict {
        kind,
        exit_code: outcome.exit_code,
        value,
        files: outcome.files,
        detail,
        peak_memory: outcome.peak_memory,
    })
}

/// Errors that a guest can cause by what it does. The kind of a `HyperlightVmError` is private to Hyperlight, so a fault of
/// KVM itself during a call is among them; the text tells.
fn is_guests_fault(error: &HyperlightError) -> bool {
    matches!(
        error,
        HyperlightError::ExecutionAccessViolation(_)
            | HyperlightError::MemoryAccessViolation(..)
            | HyperlightError::TransportError(_)
            | HyperlightError::GuestError(..)
            | HyperlightError::HyperlightVmError(_)
    )
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

    fn record(trapped: u8, denied: u8, exit_code: i32) -> Vec<u8> {
        let mut bytes = vec![trapped, denied, 0];
        bytes.extend(exit_code.to_le_bytes());
        bytes.extend([0; 20]);
        bytes
    }

    fn kind(called: Result<Vec<u8>, HyperlightError>, stopped: Option<StopReason>) -> &'static str {
        judge(called, stopped).unwrap().kind.as_str()
    }

    #[test]
    fn the_verdict_follows_what_the_host_saw() {
        assert_eq!(kind(Ok(record(0, 0, 0)), None), "ok");
        assert_eq!(kind(Ok(record(0, 0, 3)), None), "error");
        assert_eq!(kind(Ok(record(0, 1, 1)), None), "memory");
        assert_eq!(kind(Ok(record(0, 1, 0)), None), "ok");
        assert_eq!(kind(Ok(record(1, 0, 1)), None), "crash");
        assert_eq!(kind(Ok(vec![9]), None), "crash");
        assert_eq!(kind(Err(HyperlightError::ExecutionCanceledByHost()), Some(StopReason::Timeout)), "timeout");
        assert_eq!(kind(Err(HyperlightError::ExecutionCanceledByHost()), Some(StopReason::Cancelled)), "cancelled");
        let aborted = |text: &str| Err(HyperlightError::GuestAborted(11, text.into()));
        assert_eq!(kind(aborted("out of scratch memory rip=0"), None), "memory");
        assert_eq!(kind(aborted("output limit reached"), None), "output");
        assert_eq!(kind(aborted("Exception: PageFault | x"), None), "crash");
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
