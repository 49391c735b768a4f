//! Reports of the host core as the objects of `wcpod.sandbox.result`: the one conversion.
use std::collections::BTreeMap;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use pythonize::pythonize;

use crate::run::{CallRecord, RunReport};

/// `class` of `wcpod.sandbox.result`, made of keyword arguments.
fn make<'py>(py: Python<'py>, class: &str, fields: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    py.import("wcpod.sandbox.result")?.getattr(class)?.call((), Some(fields))
}

/// An `Isolation`.
pub fn isolation(py: Python<'_>, hypervisor: &str, privilege_ring: u64) -> PyResult<Py<PyAny>> {
    let fields = PyDict::new(py);
    fields.set_item("tier", "micro-vm")?;
    fields.set_item("hypervisor", hypervisor)?;
    fields.set_item("privilege_mode", if privilege_ring == 0 { "ring0" } else { "ring3" })?;
    Ok(make(py, "Isolation", &fields)?.unbind())
}

/// A `HostCall`.
pub fn host_call<'py>(py: Python<'py>, record: &CallRecord, agent: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
    let fields = PyDict::new(py);
    fields.set_item("name", &*record.name)?;
    fields.set_item("count", record.count)?;
    fields.set_item("agent", agent)?;
    fields.set_item("status", record.status.as_str())?;
    fields.set_item("seconds", record.duration.as_secs_f64())?;
    fields.set_item("reason", &record.reason)?;
    fields.set_item("fetch", record.fetch.as_ref().map(|fetch| fetch_record(py, fetch)).transpose()?)?;
    make(py, "HostCall", &fields)
}

/// A `FetchRecord`: its fields are those of the audit record.
fn fetch_record<'py>(py: Python<'py>, record: &egress::AuditRecord) -> PyResult<Bound<'py, PyAny>> {
    make(py, "FetchRecord", pythonize(py, record)?.cast::<PyDict>()?)
}

/// An `ExecutionResult`.
pub fn result(py: Python<'_>, report: &RunReport, isolation: &Py<PyAny>, agent: Option<&str>) -> PyResult<Py<PyAny>> {
    let calls: PyResult<Vec<_>> = report.calls.iter().map(|call| host_call(py, call, agent)).collect();
    let files: BTreeMap<&str, _> =
        report.files.iter().map(|(path, content)| (path.as_str(), PyBytes::new(py, content))).collect();
    let fields = PyDict::new(py);
    fields.set_item("kind", report.kind.as_str())?;
    fields.set_item("exit_code", report.exit_code)?;
    fields.set_item("stdout", RunReport::text_of(&report.stdout))?;
    fields.set_item("stderr", RunReport::text_of(&report.stderr))?;
    fields.set_item("value", &report.value)?;
    fields.set_item("files", files)?;
    fields.set_item("host_calls", PyTuple::new(py, calls?)?)?;
    fields.set_item("usage", usage(py, report)?)?;
    fields.set_item("truncated", truncated(py, report)?)?;
    fields.set_item("isolation", isolation)?;
    fields.set_item("detail", &report.detail)?;
    Ok(make(py, "ExecutionResult", &fields)?.unbind())
}

fn usage<'py>(py: Python<'py>, report: &RunReport) -> PyResult<Bound<'py, PyAny>> {
    let fields = PyDict::new(py);
    fields.set_item("seconds", report.duration.as_secs_f64())?;
    fields.set_item("restore_seconds", report.restore.as_secs_f64())?;
    fields.set_item("dirtied_pages", report.dirtied_pages)?;
    fields.set_item("peak_memory", report.peak_memory)?;
    make(py, "Usage", &fields)
}

fn truncated<'py>(py: Python<'py>, report: &RunReport) -> PyResult<Option<Bound<'py, PyAny>>> {
    let (out, err) = (&report.stdout, &report.stderr);
    if out.omitted() == 0 && err.omitted() == 0 {
        return Ok(None);
    }
    let fields = PyDict::new(py);
    fields.set_item("stdout_bytes", out.written)?;
    fields.set_item("stdout_omitted", out.omitted())?;
    fields.set_item("stderr_bytes", err.written)?;
    fields.set_item("stderr_omitted", err.omitted())?;
    make(py, "Truncated", &fields).map(Some)
}
