//! Calls of tools on their way from a run to the thread that answers them. That thread belongs to the embedding language;
//! the run waits for it no longer than it may, and goes on without it.
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::stop::Stop;

/// What a tool reports instead of a value.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ToolError {
    /// Name of the exception's class.
    #[serde(rename = "type")]
    pub class: String,
    /// Its text.
    pub message: String,
}

/// A JSON value, or what went wrong.
pub type Answer = Result<String, ToolError>;

#[derive(Default)]
struct Queue {
    waiting: VecDeque<ToolCall>,
    over: bool,
}

/// The calls of one run.
#[derive(Default)]
pub struct ToolCalls {
    names: Vec<String>,
    queue: Mutex<Queue>,
    changed: Condvar,
}

/// One call, to be answered once.
#[derive(Clone)]
pub struct ToolCall {
    /// Name of a tool that there is.
    pub name: String,
    /// Arguments, as the guest's JSON.
    pub arguments: String,
    deadline: Instant,
    stop: Arc<Stop>,
    answer: Arc<Mutex<Option<Answer>>>,
}

impl ToolCall {
    /// Answers it; nobody may be waiting any more.
    pub fn answer(&self, answer: Answer) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
        self.stop.look_again();
    }

    /// Whether the run has gone on without an answer.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.stop.reason().is_some() || Instant::now() >= self.deadline
    }

    /// Time left until the run's limit.
    #[must_use]
    pub fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

impl ToolCalls {
    /// For a run that has these tools.
    #[must_use]
    pub fn new(names: Vec<String>) -> Self {
        Self { names, ..Self::default() }
    }

    /// Names of the tools.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next call to answer; `None` once the run is over. Waits for one.
    pub fn next(&self) -> Option<ToolCall> {
        let mut queue = self.lock();
        loop {
            if queue.over {
                return None;
            }
            if let Some(call) = queue.waiting.pop_front() {
                return Some(call);
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The run is over: whoever serves it may go.
    pub fn end(&self) {
        let mut queue = self.lock();
        queue.over = true;
        queue.waiting.clear();
        self.changed.notify_all();
    }

    /// Asks for an answer until `deadline` or a stop. `None` when it did not come in time.
    pub(crate) fn ask(&self, name: String, arguments: String, stop: &Arc<Stop>, deadline: Instant) -> Option<Answer> {
        let call = ToolCall { name, arguments, deadline, stop: Arc::clone(stop), answer: Arc::default() };
        let answer = Arc::clone(&call.answer);
        self.lock().waiting.push_back(call);
        self.changed.notify_all();
        stop.wait_for(deadline, || answer.lock().unwrap_or_else(PoisonError::into_inner).take())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::thread;

    use super::*;

    /// Answers every call by `answer`, on a thread of its own.
    pub(crate) fn served(names: &[&str], answer: impl Fn(&str, &str) -> Answer + Send + 'static) -> Arc<ToolCalls> {
        let calls = Arc::new(ToolCalls::new(names.iter().map(|name| (*name).to_owned()).collect()));
        let queue = Arc::clone(&calls);
        thread::spawn(move || {
            while let Some(call) = queue.next() {
                call.answer(answer(&call.name, &call.arguments));
            }
        });
        calls
    }

    fn soon(ms: u64) -> Instant {
        Instant::now() + Duration::from_millis(ms)
    }

    #[test]
    fn a_call_is_answered_or_left() {
        let calls = served(&["echo", "slow"], |name, arguments| {
            if name == "slow" {
                thread::sleep(Duration::from_millis(200));
            }
            Ok(arguments.to_owned())
        });
        let stop = Arc::new(Stop::default());
        let ask = |name: &str, ms| calls.ask(name.into(), "{}".into(), &stop, soon(ms));
        assert_eq!(ask("echo", 5_000), Some(Ok("{}".into())));
        assert_eq!(ask("slow", 20), None);
        calls.end();
        assert!(calls.next().is_none());
    }

    #[test]
    fn whoever_answers_can_see_that_nobody_waits() {
        let calls = Arc::new(ToolCalls::new(vec!["tool".into()]));
        let (queue, stop) = (Arc::clone(&calls), Arc::new(Stop::default()));
        let server = thread::spawn(move || {
            let call = queue.next().unwrap();
            assert!(call.time_left() <= Duration::from_millis(50));
            while !call.is_abandoned() {
                thread::sleep(Duration::from_millis(5));
            }
        });
        assert_eq!(calls.ask("tool".into(), "{}".into(), &stop, soon(50)), None);
        server.join().unwrap();
    }
}
