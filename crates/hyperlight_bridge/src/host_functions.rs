//! What the guest may call: `FetchUrl`, `CallTool`, `Sleep`. Their arguments are the guest's; each call is counted, bounded
//! by the run's deadline, and recorded however it ends.
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use egress::{AuditRecord, FetchReply, FetchRequest, Format, Status};
use guest_abi::function::host::{CALL_TOOL, FETCH_URL, SLEEP};
use guest_abi::reply;
use hyperlight_host::SandboxBuilder;

use crate::run::{ActiveRun, CallRecord, CallStatus, OverLimit};
use crate::stop::StopReason;
use crate::tool_calls::ToolError;

/// Longest JSON of a tool's arguments.
const MAX_ARGUMENT_BYTES: usize = 1 << 20;
/// What a record calls a tool that there is not: its name is the guest's.
pub const UNKNOWN: &str = "(unknown)";

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
    let (fetch, tool, sleep, print) = (current.clone(), current.clone(), current.clone(), current.clone());
    builder
        .host_function(FETCH_URL, move |url: String, offset: u64, format: String| {
            fetch.get().map_or_else(no_run, |run| fetch_url(&run, url, offset, &format))
        })
        .host_function(CALL_TOOL, move |name: String, arguments: String| {
            tool.get().map_or_else(no_run, |run| call_tool(&run, name, arguments))
        })
        .host_function(SLEEP, move |ns: u64| {
            if let Some(run) = sleep.get() {
                let end = Instant::now().checked_add(Duration::from_nanos(ns)).unwrap_or(run.deadline);
                run.stop.wait_until(end.min(run.deadline));
                run.note_deadline();
            }
            ns
        })
        // Hyperlight registers one of its own, which writes to the host's standard output. Our guest never calls it.
        .host_print(move |_: String| {
            if let Some(run) = print.get() {
                run.stop.request(StopReason::Intruded);
            }
            0
        })
}

fn no_run() -> String {
    refusal("ToolError", "there is no run that this call could belong to")
}

/// An error as the guest's runtime reads it.
fn refusal(class: &str, message: &str) -> String {
    let error = ToolError { class: class.into(), message: message.into() };
    reply::encode(Err(&serde_json::to_string(&error).unwrap_or_else(|_| "{}".into())))
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

    fn page(FetchReply { page, audit }: FetchReply) -> Self {
        let status = match audit.status {
            Status::Ok => CallStatus::Ok,
            Status::Blocked => CallStatus::Blocked,
            Status::Error => CallStatus::Error,
        };
        match serde_json::to_string(&page) {
            Ok(page) => {
                Self { reply: reply::encode(Ok(&page)), status, reason: audit.reason.clone(), fetch: Some(audit) }
            }
            Err(error) => Self::error("ToolError", format!("the page cannot be handed over: {error}")),
        }
    }
}

fn fetch_url(run: &Arc<ActiveRun>, url: String, offset: u64, format: &str) -> String {
    let begin = Instant::now();
    // The record of a fetch that has no other.
    let mut asked = AuditRecord::started(&url);
    let request = FetchRequest {
        url,
        offset: usize::try_from(offset).unwrap_or(usize::MAX),
        format: if format == "html" { Format::Html } else { Format::Text },
    };
    counted(run, "fetch_url", |over_limit| {
        let blocked = over_limit.is_some();
        let mut answer = over_limit.unwrap_or_else(|| page(run, request));
        if answer.fetch.is_none() {
            if blocked || answer.status == CallStatus::Blocked {
                (asked.status, asked.decision) = (Status::Blocked, "block");
            }
            asked.reason.clone_from(&answer.reason);
            asked.duration = begin.elapsed().as_secs_f64();
            answer.fetch = Some(asked);
        }
        answer.fetch = answer.fetch.map(|audit| AuditRecord { agent: run.services.agent.clone(), ..audit });
        answer
    })
}

/// Fetches on a thread of its own, which is left behind when the run must end first.
fn page(run: &Arc<ActiveRun>, request: FetchRequest) -> Answer {
    let Some(pages) = run.services.pages.clone() else {
        let message = "this sandbox has no network: it was made without a fetch policy".to_owned();
        return Answer { status: CallStatus::Blocked, ..Answer::error("PermissionError", message) };
    };
    let deadline = run.deadline;
    let reply = run.stop.run_or_leave(deadline, move || pages.fetch(&request, deadline));
    reply.map_or_else(|| left_behind(run), Answer::page)
}

fn call_tool(run: &Arc<ActiveRun>, name: String, arguments: String) -> String {
    let tools = run.services.tools.clone();
    let known = tools.as_ref().is_some_and(|tools| tools.names().contains(&name));
    let record_name = if known { name.clone() } else { UNKNOWN.to_owned() };
    counted(run, &record_name, |over_limit| match (over_limit, tools) {
        (Some(refused), _) => refused,
        (None, Some(tools)) if known && arguments.len() <= MAX_ARGUMENT_BYTES => {
            match tools.ask(name, arguments, &run.stop, run.deadline) {
                Some(Ok(value)) => {
                    Answer { reply: reply::encode(Ok(&value)), status: CallStatus::Ok, reason: None, fetch: None }
                }
                Some(Err(ToolError { class, message })) => Answer::error(&class, message),
                None => left_behind(run),
            }
        }
        (None, Some(_)) if known => {
            let bytes = arguments.len();
            Answer::error("ValueError", format!("the arguments are {bytes} bytes, at most {MAX_ARGUMENT_BYTES} fit"))
        }
        (None, tools) => {
            let names = tools.iter().flat_map(|tools| tools.names()).map(String::as_str);
            let names: Vec<&str> = std::iter::once("fetch_url").chain(names).collect();
            Answer::error("LookupError", format!("there is no such tool; there are: {}", names.join(", ")))
        }
    })
}

/// Counts a call, has it answered, and records it. `answer` gets what to say to a call over the limit; of these only the
/// first of each name is recorded, with their number.
fn counted(run: &Arc<ActiveRun>, name: &str, answer: impl FnOnce(Option<Answer>) -> Answer) -> String {
    let begin = Instant::now();
    let name: Arc<str> = name.into();
    let over_limit = match run.begin_call(&name) {
        Ok(()) => None,
        Err(OverLimit { limit, is_first }) => {
            let answer = Answer::error("ToolError", format!("this run has used up its {limit} host calls"));
            if !is_first {
                return answer.reply;
            }
            Some(answer)
        }
    };
    let answer = answer(over_limit);
    let answer = if answer.reply.len() > reply::MAX_BYTES {
        let message = format!("the reply is too long: {} bytes, at most {} fit", answer.reply.len(), reply::MAX_BYTES);
        Answer { fetch: answer.fetch, ..Answer::error("ToolError", message) }
    } else {
        answer
    };
    run.end_call(CallRecord::new(&name, answer.status, begin.elapsed(), answer.reason, answer.fetch));
    answer.reply
}

fn left_behind(run: &ActiveRun) -> Answer {
    run.note_deadline();
    let (status, message) = match run.stop.reason() {
        Some(StopReason::TimedOut) => (CallStatus::Timeout, "the run's time limit has passed"),
        Some(_) => (CallStatus::Cancelled, "the run was cancelled"),
        None => (CallStatus::Error, "the host function failed"),
    };
    Answer { status, ..Answer::error("TimeoutError", message.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{MOST_REFUSED, Pages, Services};
    use crate::tool_calls::tests::served;

    const SLOW_PAGE: &str = "https://slow.example/?a=1";

    struct SlowOrBroken;

    impl Pages for SlowOrBroken {
        fn fetch(&self, request: &FetchRequest, _: Instant) -> FetchReply {
            assert_eq!(request.url, SLOW_PAGE, "expected in this test");
            std::thread::sleep(Duration::from_millis(300));
            panic!("expected in this test");
        }
    }

    fn run(host_calls: u32, ms: u64, pages: bool) -> Arc<ActiveRun> {
        let tools = served(&["echo", "long", "slow", "no"], |name, arguments| match name {
            "echo" => Ok(arguments.to_owned()),
            "long" => Ok("x".repeat(reply::MAX_BYTES)),
            "slow" => {
                std::thread::sleep(Duration::from_millis(300));
                Ok("null".into())
            }
            _ => Err(ToolError { class: "KeyError".into(), message: name.into() }),
        });
        let services = Services {
            pages: pages.then(|| Arc::new(SlowOrBroken) as Arc<dyn Pages>),
            tools: Some(tools),
            agent: Some("SearchAgent".into()),
            ..Services::default()
        };
        Arc::new(ActiveRun::new(services, Arc::default(), Instant::now() + Duration::from_millis(ms), host_calls))
    }

    fn statuses(run: &ActiveRun) -> Vec<&'static str> {
        run.end().calls.iter().map(|call| call.status.as_str()).collect()
    }

    #[test]
    fn values_and_errors_reach_the_guest_and_are_recorded() {
        let run = run(10, 5_000, false);
        let tool = |name: &str| call_tool(&run, name.into(), "{}".into());
        assert_eq!(tool("echo"), "+{}");
        assert_eq!(tool("no"), r#"-{"type":"KeyError","message":"no"}"#);
        assert!(tool("long").contains("the reply is too long"));
        assert!(fetch_url(&run, "https://x/".into(), 0, "text").contains("without a fetch policy"));
        assert_eq!(statuses(&run), ["ok", "error", "error", "blocked"]);
    }

    #[test]
    fn a_name_that_is_no_tool_s_is_refused_and_not_kept() {
        let run = run(10, 5_000, false);
        for name in ["fetch_url", "execute_code", "\u{1b}[31m", &"n".repeat(60_000)] {
            let reply = call_tool(&run, name.into(), "{}".into());
            assert!(reply.contains("there is no such tool; there are: fetch_url, echo, long, slow, no"), "{reply}");
        }
        assert!(run.end().calls.iter().all(|call| &*call.name == UNKNOWN));
    }

    #[test]
    fn arguments_that_are_too_long_reach_no_tool() {
        let run = run(10, 5_000, false);
        let reply = call_tool(&run, "echo".into(), "x".repeat(MAX_ARGUMENT_BYTES + 1));
        assert!(reply.contains("the arguments are 1048577 bytes, at most 1048576 fit"));
        assert_eq!(call_tool(&run, "echo".into(), "x".repeat(1000)).len(), 1001);
    }

    #[test]
    fn calls_over_the_limit_are_one_record_with_their_number() {
        let run = run(1, 5_000, false);
        call_tool(&run, "echo".into(), "{}".into());
        assert!(call_tool(&run, "echo".into(), "{}".into()).contains("used up its 1 host calls"));
        for _ in 1..MOST_REFUSED {
            fetch_url(&run, "https://x/".into(), 0, "text");
        }
        assert_eq!(run.stop.reason(), Some(StopReason::HostCalls));
        let counts: Vec<_> = run.end().calls.iter().map(|call| (call.status.as_str(), call.count)).collect();
        assert_eq!(counts, [("ok", 1), ("error", 1), ("error", MOST_REFUSED - 1)]);
    }

    #[test]
    fn a_call_does_not_outlive_its_run() {
        let timed = run(10, 30, false);
        assert!(call_tool(&timed, "slow".into(), "{}".into()).contains("the run's time limit has passed"));
        let cancelled = run(10, 5_000, false);
        cancelled.stop.request(StopReason::Cancelled);
        assert!(call_tool(&cancelled, "slow".into(), "{}".into()).contains("the run was cancelled"));
        assert_eq!(statuses(&timed), ["timeout"]);
        assert_eq!(statuses(&cancelled), ["cancelled"]);
    }

    #[test]
    fn a_fetch_that_nobody_waited_for_is_audited_too() {
        let audited = |run: &Arc<ActiveRun>, url: &str| {
            fetch_url(run, url.into(), 0, "text");
            let audit = run.end().calls.pop().unwrap().fetch.unwrap();
            assert_eq!(audit.agent.as_deref(), Some("SearchAgent"));
            (audit.url, audit.status, audit.decision, audit.reason.unwrap())
        };
        assert_eq!(
            audited(&run(10, 30, true), SLOW_PAGE),
            (SLOW_PAGE.into(), Status::Error, "allow", "the run's time limit has passed".into())
        );
        assert_eq!(
            audited(&run(10, 5_000, true), "https://broken.example/"),
            ("https://broken.example/".into(), Status::Error, "allow", "the host function failed".into())
        );
        assert_eq!(
            audited(&run(0, 5_000, true), "https://user:secret@x/"),
            ("https://…@x/".into(), Status::Blocked, "block", "this run has used up its 0 host calls".into())
        );
        let (.., decision, reason) = audited(&run(10, 5_000, false), "https://x/");
        assert_eq!((decision, reason.contains("without a fetch policy")), ("block", true));
    }
}
