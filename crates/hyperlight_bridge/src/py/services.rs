//! Host calls answered by Python: fetches in Rust, tools by a callable, records to a callable.
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use egress::{FetchRequest, Format};
use pyo3::prelude::*;

use crate::run::{self, Fetched, HostServices, ToolError};

/// One call of the guest that reached the host.
#[pyclass(frozen, module = "wcpod._bridge")]
pub struct CallRecord {
    inner: run::CallRecord,
}

impl From<run::CallRecord> for CallRecord {
    fn from(inner: run::CallRecord) -> Self {
        Self { inner }
    }
}

#[pymethods]
impl CallRecord {
    #[getter]
    fn name(&self) -> &str {
        &self.inner.name
    }

    #[getter]
    fn status(&self) -> &'static str {
        self.inner.status.as_str()
    }

    #[getter]
    fn seconds(&self) -> f64 {
        self.inner.duration.as_secs_f64()
    }

    #[getter]
    fn reason(&self) -> Option<&str> {
        self.inner.reason.as_deref()
    }

    /// JSON of the audit record of a fetch.
    #[getter]
    fn fetch(&self) -> Option<String> {
        self.inner.fetch.as_ref().and_then(|record| serde_json::to_string(record).ok())
    }
}

/// What one run may use.
pub struct PythonServices {
    /// `dispatch(name, arguments, seconds_left) -> str`, JSON in and out.
    pub dispatch: Option<Py<PyAny>>,
    /// `on_call(record)`.
    pub on_call: Option<Py<PyAny>>,
    /// `on_output(stream, text)`.
    pub on_output: Option<Py<PyAny>>,
    /// Fetches; without one there is no network.
    pub session: Option<Arc<egress::FetchSession>>,
    /// Who runs, for the audit records.
    pub agent: Option<String>,
    /// Names of the tools.
    pub tools: Vec<String>,
    /// The first exception that `on_call` or `on_output` raised.
    pub failure: Mutex<Option<PyErr>>,
}

impl HostServices for PythonServices {
    fn fetch_url(&self, url: String, offset: u64, format: String, deadline: Instant) -> Option<Fetched> {
        let session = self.session.as_ref()?;
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        // The guest's side checks the format too; here it is only never wrong.
        let format = if format == "html" { Format::Html } else { Format::Text };
        let reply = session.fetch(&FetchRequest { url, offset, format }, deadline);
        let page = serde_json::to_string(&reply.page).unwrap_or_else(|_| "null".into());
        Some(Fetched { page, audit: reply.audit })
    }

    fn call_tool(&self, name: &str, arguments: &str, deadline: Instant) -> Result<String, ToolError> {
        let Some(dispatch) = &self.dispatch else {
            return Err(ToolError { class: "ToolError".into(), message: format!("there is no tool {name:?}") });
        };
        let left = deadline.checked_duration_since(Instant::now()).unwrap_or(Duration::ZERO).as_secs_f64();
        Python::attach(|py| {
            let called = dispatch.call1(py, (name, arguments, left)).and_then(|reply| reply.extract::<String>(py));
            called.map_err(|error| ToolError {
                class: error.get_type(py).name().map_or_else(|_| "ToolError".into(), |name| name.to_string()),
                message: error
                    .value(py)
                    .str()
                    .map_or_else(|_| String::new(), |text| text.to_string_lossy().into_owned()),
            })
        })
    }

    fn tool_names(&self) -> String {
        self.tools.join("\n")
    }

    fn agent(&self) -> Option<String> {
        self.agent.clone()
    }

    fn call_ended(&self, record: &run::CallRecord) {
        let Some(on_call) = &self.on_call else { return };
        Python::attach(|py| self.keep_failure(on_call.call1(py, (CallRecord::from(record.clone()),))));
    }

    fn wants_output(&self) -> bool {
        self.on_output.is_some()
    }

    fn output(&self, to_stderr: bool, text: &str) {
        let Some(on_output) = &self.on_output else { return };
        let stream = if to_stderr { "stderr" } else { "stdout" };
        Python::attach(|py| self.keep_failure(on_output.call1(py, (stream, text))));
    }
}

impl PythonServices {
    fn keep_failure(&self, called: PyResult<Py<PyAny>>) {
        if let Err(error) = called {
            self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    }
}
