//! What a run has for the threads that run Python code for it: its events, and the calls of its tools.
//!
//! These threads are Python's own. A thread of this crate never runs code of the user: where the interpreter ends, Python
//! ends such a thread in the middle of its code, which a thread with Rust on its stack does not survive.
use std::sync::Arc;

use pyo3::prelude::*;

use super::report;
use crate::events;
use crate::tool_calls::{self, ToolError};

/// The events of one run, for one listener.
#[pyclass(frozen, module = "wcpod._bridge")]
pub struct Events {
    pub inner: Arc<events::Events>,
    agent: Option<String>,
}

#[pymethods]
impl Events {
    #[new]
    fn new(calls: bool, output: bool, most_output: u64, agent: Option<String>) -> Self {
        Self { inner: Arc::new(events::Events::new(calls, output, most_output)), agent }
    }

    /// Waits for the next: a `HostCall`, or stream and text. None at the end.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match py.detach(|| self.inner.next()) {
            None => Ok(None),
            Some(events::Event::Call(record)) => report::host_call(py, &record, self.agent.as_deref()).map(Some),
            Some(events::Event::Output { to_stderr, text }) => {
                let stream = if to_stderr { "stderr" } else { "stdout" };
                Ok(Some((stream, text).into_pyobject(py)?.into_any()))
            }
        }
    }
}

/// The calls of one run's tools, for one thread that answers them.
#[pyclass(frozen, module = "wcpod._bridge")]
pub struct ToolCalls {
    pub inner: Arc<tool_calls::ToolCalls>,
}

#[pymethods]
impl ToolCalls {
    #[new]
    fn new(names: Vec<String>) -> Self {
        Self { inner: Arc::new(tool_calls::ToolCalls::new(names)) }
    }

    /// Waits for the next. None once the run is over.
    fn next(&self, py: Python<'_>) -> Option<ToolCall> {
        py.detach(|| self.inner.next()).map(|inner| ToolCall { inner })
    }
}

/// One call of a tool.
#[pyclass(frozen, module = "wcpod._bridge")]
pub struct ToolCall {
    inner: tool_calls::ToolCall,
}

#[pymethods]
impl ToolCall {
    #[getter]
    fn name(&self) -> &str {
        &self.inner.name
    }

    /// JSON, as the guest sent it.
    #[getter]
    fn arguments(&self) -> &str {
        &self.inner.arguments
    }

    /// Until the run's limit.
    fn seconds_left(&self) -> f64 {
        self.inner.time_left().as_secs_f64()
    }

    /// Whether the run has gone on without an answer.
    fn is_abandoned(&self) -> bool {
        self.inner.is_abandoned()
    }

    /// Answers it with a JSON value.
    fn answer(&self, value: String) {
        self.inner.answer(Ok(value));
    }

    /// Answers it with what the guest's code shall raise: a name of a class, and text.
    fn fail(&self, class_name: String, message: String) {
        self.inner.answer(Err(ToolError { class: class_name, message }));
    }
}
