//! Fetch policy, fetch session and page extraction for Python.
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use egress::FetchLimits;
use pyo3::prelude::*;

use super::error;

/// Which URLs a sandbox may fetch.
#[pyclass(frozen, module = "wcpod._bridge")]
pub struct FetchPolicy {
    pub inner: egress::FetchPolicy,
}

#[pymethods]
impl FetchPolicy {
    #[new]
    #[pyo3(signature = (hosts, paths, query, max_url_bytes))]
    fn new(
        hosts: Option<Vec<String>>,
        paths: Option<Vec<String>>,
        query: bool,
        max_url_bytes: Option<usize>,
    ) -> PyResult<Self> {
        let mut inner = match hosts {
            None => egress::FetchPolicy::bbc(),
            Some(hosts) => egress::FetchPolicy::new(hosts).map_err(error::policy)?,
        };
        if let Some(paths) = paths {
            inner = inner.with_paths(paths).map_err(error::policy)?;
        }
        if let Some(bytes) = max_url_bytes {
            inner = inner.with_max_url_bytes(bytes).map_err(error::policy)?;
        }
        Ok(Self { inner: inner.with_query(query) })
    }

    #[getter]
    fn hosts(&self) -> Vec<String> {
        self.inner.hosts().map(str::to_owned).collect()
    }

    /// (allowed, reason, host)
    fn check(&self, url: &str) -> (bool, String, Option<String>) {
        let decision = self.inner.check(url);
        (decision.allowed, decision.reason, decision.host)
    }
}

/// Limits, cache and source of a run's fetches.
#[pyclass(frozen, module = "wcpod._bridge")]
pub struct FetchSession {
    pub inner: Arc<egress::FetchSession>,
}

#[pymethods]
impl FetchSession {
    #[new]
    #[pyo3(signature = (policy, archive, record, fetches, contact, pause))]
    fn new(
        py: Python<'_>,
        policy: &FetchPolicy,
        archive: Option<PathBuf>,
        record: Option<PathBuf>,
        fetches: Option<u32>,
        contact: Option<String>,
        pause: Option<f64>,
    ) -> PyResult<Self> {
        let mut limits = FetchLimits { contact, ..FetchLimits::default() };
        if let Some(fetches) = fetches {
            limits.fetches = fetches;
        }
        if let Some(seconds) = pause {
            limits.pause = Duration::try_from_secs_f64(seconds).unwrap_or(limits.pause);
        }
        let mut builder = egress::FetchSession::builder(policy.inner.clone()).limits(limits);
        if let Some(folder) = archive {
            builder = builder.archive(folder);
        }
        if let Some(folder) = record {
            builder = builder.record(folder);
        }
        let session = py.detach(|| builder.build()).map_err(error::session)?;
        Ok(Self { inner: Arc::new(session) })
    }
}

/// JSON of the page that `html` holds.
#[pyfunction]
pub fn extract_page(py: Python<'_>, html: &[u8], content_type: &str, url: &str, limit: usize) -> PyResult<String> {
    let page = py.detach(|| egress::extract_page(html, content_type, url, limit));
    serde_json::to_string(&page).map_err(|error| error::named("SandboxError", error.to_string()))
}
