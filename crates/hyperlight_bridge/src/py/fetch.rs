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
        hosts: Vec<String>,
        paths: Option<Vec<String>>,
        query: bool,
        max_url_bytes: Option<usize>,
    ) -> PyResult<Self> {
        let mut inner = egress::FetchPolicy::new(hosts).map_err(error::policy)?;
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
    /// `limits` is a `wcpod.FetchLimits`.
    #[new]
    #[pyo3(signature = (policy, *, archive=None, record=None, limits=None, contact=None))]
    fn new(
        py: Python<'_>,
        policy: &FetchPolicy,
        archive: Option<PathBuf>,
        record: Option<PathBuf>,
        limits: Option<&Bound<'_, PyAny>>,
        contact: Option<String>,
    ) -> PyResult<Self> {
        let limits = limits.map_or_else(|| Ok(FetchLimits::default()), limits_of)?;
        let mut builder = egress::FetchSession::builder(policy.inner.clone()).limits(FetchLimits { contact, ..limits });
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

fn limits_of(limits: &Bound<'_, PyAny>) -> PyResult<FetchLimits> {
    let seconds = |name: &str| -> PyResult<Duration> {
        Ok(Duration::try_from_secs_f64(limits.getattr(name)?.extract()?).unwrap_or(Duration::MAX))
    };
    Ok(FetchLimits {
        fetches: limits.getattr("fetches")?.extract()?,
        total_bytes: limits.getattr("total_bytes")?.extract()?,
        page_bytes: limits.getattr("page_bytes")?.extract()?,
        redirects: limits.getattr("redirects")?.extract()?,
        deadline: seconds("seconds")?,
        concurrent: limits.getattr("concurrent")?.extract()?,
        pause: seconds("pause_seconds")?,
        ..FetchLimits::default()
    })
}

/// The operator's file of fetches.
#[pyclass(frozen, module = "wcpod._bridge")]
pub struct AuditLog {
    pub inner: Arc<egress::AuditLog>,
}

#[pymethods]
impl AuditLog {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let opened = py.detach(|| egress::AuditLog::open(&path));
        let inner = opened.map_err(|error| error::named("FetchPolicyError", error.to_string()))?;
        Ok(Self { inner: Arc::new(inner) })
    }
}

/// JSON of the page that `html` holds.
#[pyfunction]
pub fn extract_page(py: Python<'_>, html: &[u8], content_type: &str, url: &str, limit: usize) -> PyResult<String> {
    let page = py.detach(|| egress::extract_page(html, content_type, url, limit));
    serde_json::to_string(&page).map_err(|error| error::named("SandboxError", error.to_string()))
}
