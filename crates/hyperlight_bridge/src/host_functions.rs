//! What the guest may call: `FetchUrl`, `CallTool`, `Sleep`. Their arguments are the guest's; each call is counted, bounded
//! by the run's deadline, and recorded however it ends.
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use egress::{AuditRecord, Status};
use hyperlight_host::SandboxBuilder;

use crate::run::{ActiveRun, CallRecord, CallStatus, Fetched, ToolError};
use crate::stop::StopReason;

/// Longest reply that fits through the transport, with room for its envelope.
const MAX_REPLY_BYTES: usize = 1 << 20;

/// The run that the host functions act for; `None` between runs.
#[derive(Clone, Default)]
pub(crate) struct CurrentRun(Arc<Mutex<Option<Arc<ActiveRun>>>>);

impl CurrentRun {
    pub fn set(&self, run: Option<Arc<ActiveRun>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = run;
    }

    fn get(&self) -> Option<Arc<ActiveRun>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Registers the host functions. The same set is needed wherever a snapshot of such a sandbox is used.
pub(crate) fn register(builder: SandboxBuilder, current: &CurrentRun) -> SandboxBuilder {
    let (fetch, tool, sleep) = (current.clone(), current.clone(), current.clone());
    builder
        .host_function("FetchUrl", move |url: String, offset: u64, format: String| {
            fetch.get().map_or_else(no_run, |run| fetch_url(&run, url, offset, format))
        })
        .host_function("CallTool", move |name: String, arguments: String| {
            tool.get().map_or_else(no_run, |run| call_tool(&run, name, arguments))
        })
        .host_function("Sleep", move |ns: u64| {
            if let Some(run) = sleep.get() {
                let end = Instant::now().checked_add(Duration::from_nanos(ns)).unwrap_or(run.deadline);
                run.stop.wait_until(end.min(run.deadline));
            }
            ns
        })
}

fn no_run() -> String {
    refusal("ToolError", "there is no run that this call could belong to")
}

/// An error as the guest's runtime reads it.
fn refusal(class: &str, message: &str) -> String {
    let error = ToolError { class: class.into(), message: message.into() };
    format!("-{}", serde_json::to_string(&error).unwrap_or_else(|_| "{}".into()))
}

/// A reply and the record to go with it.
struct Answer {
    reply: String,
    status: CallStatus,
    reason: Option<String>,
    fetch: Option<AuditRecord>,
}

impl Answer {
    fn error(class: &str, message: String) -> Self {
        Self { reply: refusal(class, &message), status: CallStatus::Error, reason: Some(message), fetch: None }
    }
}

fn fetch_url(run: &Arc<ActiveRun>, url: String, offset: u64, format: String) -> String {
    let asked = AuditRecord::started(&url);
    counted(run, "fetch_url".into(), Some(asked), move |services, deadline| {
        let Some(Fetched { page, audit }) = services.fetch_url(url, offset, format, deadline) else {
            let message = "this sandbox has no network: it was made without a fetch policy".to_owned();
            return Answer { status: CallStatus::Blocked, ..Answer::error("PermissionError", message) };
        };
        let status = match audit.status {
            Status::Ok => CallStatus::Ok,
            Status::Blocked => CallStatus::Blocked,
            Status::Error => CallStatus::Error,
        };
        Answer { reply: format!("+{page}"), status, reason: audit.reason.clone(), fetch: Some(audit) }
    })
}

fn call_tool(run: &Arc<ActiveRun>, name: String, arguments: String) -> String {
    let record_name = name.clone();
    counted(run, record_name, None, move |services, deadline| match services.call_tool(&name, &arguments, deadline) {
        Ok(value) => Answer { reply: format!("+{value}"), status: CallStatus::Ok, reason: None, fetch: None },
        Err(ToolError { class, message }) => Answer::error(&class, message),
    })
}

/// Answers a call on a thread of its own and records it, also when the run ends first. `asked` is the audit record of a
/// fetch that has no other.
fn counted(
    run: &Arc<ActiveRun>,
    name: String,
    mut asked: Option<AuditRecord>,
    answer: impl FnOnce(&dyn crate::run::HostServices, Instant) -> Answer + Send + 'static,
) -> String {
    let begin = Instant::now();
    let begun = run.begin_call();
    let answer = match begun {
        Err(limit) => Answer::error("ToolError", format!("this run has used up its {limit} host calls")),
        Ok(()) => {
            let (services, deadline) = (Arc::clone(&run.services), run.deadline);
            let answered = run.stop.run_or_leave(deadline, move || answer(&*services, deadline));
            answered.unwrap_or_else(|| left_behind(run))
        }
    };
    let answer = if answer.reply.len() > MAX_REPLY_BYTES {
        let message = format!("the reply is too long: {} bytes, at most {MAX_REPLY_BYTES} fit", answer.reply.len());
        Answer { fetch: answer.fetch, ..Answer::error("ToolError", message) }
    } else {
        answer
    };
    let duration = begin.elapsed();
    if let Some(audit) = &mut asked {
        if begun.is_err() || answer.status == CallStatus::Blocked {
            (audit.status, audit.decision) = (Status::Blocked, "block");
        }
        audit.reason.clone_from(&answer.reason);
        audit.duration = duration.as_secs_f64();
    }
    let fetch = answer.fetch.or(asked).map(|audit| AuditRecord { agent: run.services.agent(), ..audit });
    run.end_call(CallRecord { name, status: answer.status, duration, reason: answer.reason, fetch });
    answer.reply
}

fn left_behind(run: &ActiveRun) -> Answer {
    let (status, message) = match run.stop.reason() {
        Some(StopReason::Cancelled) => (CallStatus::Cancelled, "the run was given up"),
        Some(StopReason::Timeout) => (CallStatus::Timeout, "the run's time is over"),
        None if Instant::now() >= run.deadline => (CallStatus::Timeout, "the run's time is over"),
        None => (CallStatus::Error, "the host function failed"),
    };
    Answer { status, ..Answer::error("TimeoutError", message.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{HostServices, RunLimits, RunRequest};
    use crate::stop::Stop;

    const SLOW_PAGE: &str = "https://slow.example/?a=1";

    struct Services;

    impl HostServices for Services {
        fn fetch_url(&self, url: String, _: u64, _: String, _: Instant) -> Option<Fetched> {
            if url == SLOW_PAGE {
                std::thread::sleep(Duration::from_millis(300));
            }
            None
        }

        fn call_tool(&self, name: &str, arguments: &str, _: Instant) -> Result<String, ToolError> {
            match name {
                "echo" => Ok(arguments.to_owned()),
                "long" => Ok("x".repeat(MAX_REPLY_BYTES)),
                "slow" => {
                    std::thread::sleep(Duration::from_millis(300));
                    Ok("null".into())
                }
                "panics" => panic!("expected in this test"),
                _ => Err(ToolError { class: "KeyError".into(), message: name.into() }),
            }
        }

        fn tool_names(&self) -> String {
            String::new()
        }

        fn agent(&self) -> Option<String> {
            Some("SearchAgent".into())
        }

        fn call_ended(&self, _: &CallRecord) {}
    }

    fn run(host_calls: u32, ms: u64) -> Arc<ActiveRun> {
        let wall = Duration::from_millis(ms);
        let request = RunRequest {
            code: String::new(),
            inputs: Vec::new(),
            limits: RunLimits { wall, memory_bytes: 0, output_bytes: 0, host_calls },
            services: Arc::new(Services),
            stop: Arc::new(Stop::default()),
        };
        Arc::new(ActiveRun::new(&request, Instant::now() + wall))
    }

    fn statuses(run: &ActiveRun) -> Vec<&'static str> {
        run.take_calls().iter().map(|call| call.status.as_str()).collect()
    }

    #[test]
    fn values_and_errors_reach_the_guest_and_are_recorded() {
        let run = run(10, 5_000);
        assert_eq!(call_tool(&run, "echo".into(), "{}".into()), "+{}");
        assert_eq!(call_tool(&run, "no".into(), "{}".into()), r#"-{"type":"KeyError","message":"no"}"#);
        assert!(call_tool(&run, "panics".into(), "{}".into()).contains("the host function failed"));
        assert!(call_tool(&run, "long".into(), "{}".into()).contains("the reply is too long"));
        assert!(fetch_url(&run, "https://x/".into(), 0, "text".into()).contains("without a fetch policy"));
        assert_eq!(statuses(&run), ["ok", "error", "error", "error", "blocked"]);
    }

    #[test]
    fn calls_over_the_limit_are_refused_and_recorded() {
        let run = run(1, 5_000);
        call_tool(&run, "echo".into(), "{}".into());
        assert!(call_tool(&run, "echo".into(), "{}".into()).contains("used up its 1 host calls"));
        assert_eq!(statuses(&run), ["ok", "error"]);
    }

    #[test]
    fn a_call_does_not_outlive_its_run() {
        let timed = run(10, 30);
        assert!(call_tool(&timed, "slow".into(), "{}".into()).contains("the run's time is over"));
        let cancelled = run(10, 5_000);
        cancelled.stop.request(StopReason::Cancelled);
        assert!(call_tool(&cancelled, "slow".into(), "{}".into()).contains("the run was given up"));
        assert_eq!(statuses(&timed), ["timeout"]);
        assert_eq!(statuses(&cancelled), ["cancelled"]);
    }

    #[test]
    fn a_fetch_that_nobody_waited_for_is_audited_too() {
        let audited = |run: &Arc<ActiveRun>, url: &str| {
            fetch_url(run, url.into(), 0, "text".into());
            let audit = run.take_calls().pop().unwrap().fetch.unwrap();
            assert_eq!(audit.agent.as_deref(), Some("SearchAgent"));
            (audit.url, audit.status, audit.decision, audit.reason.unwrap())
        };
        assert_eq!(
            audited(&run(10, 30), SLOW_PAGE),
            (SLOW_PAGE.into(), Status::Error, "allow", "the run's time is over".into())
        );
        assert_eq!(
            audited(&run(0, 5_000), "https://user:secret@x/"),
            ("https://…@x/".into(), Status::Blocked, "block", "this run has used up its 0 host calls".into())
        );
        let (.., decision, reason) = audited(&run(10, 5_000), "https://x/");
        assert_eq!((decision, reason.contains("without a fetch policy")), ("block", true));
    }
}
