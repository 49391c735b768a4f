//! The micro-VM for Python. Usable from any thread; runs wait for each other; the GIL is free while the guest runs.
use std::path::PathBuf;
use std::process;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::error::{named, to_python};
use super::fetch::FetchSession;
use super::services::{CallRecord, PythonServices};
use crate::guest_image::GuestImage;
use crate::micro_vm::{self, VmSize};
use crate::run::{self, RunLimits, RunRequest};
use crate::stop::{self, StopReason};

/// SHA-256 of a guest image, after looking whether it is one.
#[pyfunction]
pub fn image_digest(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    py.detach(|| Ok(GuestImage::read(&path)?.digest().to_owned())).map_err(to_python)
}

/// The stop signal of one run.
#[pyclass(frozen, module = "wcpod._bridge")]
#[derive(Default)]
pub struct Stop {
    inner: Arc<stop::Stop>,
    wake: Mutex<Option<Box<dyn Fn() + Send + Sync>>>,
}

#[pymethods]
impl Stop {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Gives the run up. Also before it began: then it ends at once.
    fn cancel(&self, py: Python<'_>) {
        py.detach(|| {
            self.inner.request(StopReason::Cancelled);
            if let Some(wake) = &*self.wake.lock().unwrap_or_else(PoisonError::into_inner) {
                wake();
            }
        });
    }
}

/// A booted micro-VM and its clean snapshot.
#[pyclass(frozen, module = "wcpod._bridge")]
pub struct MicroVm {
    inner: Mutex<Option<micro_vm::MicroVm>>,
    process: u32,
    hypervisor: String,
    privilege_ring: u64,
    boot_seconds: f64,
    snapshot_seconds: f64,
    known_pages: u64,
}

impl MicroVm {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut micro_vm::MicroVm) -> Result<T, crate::BridgeError> + Send,
    ) -> PyResult<T> {
        if self.process != process::id() {
            let message = "this sandbox was made in another process: after a fork, make a new one";
            return Err(named("SandboxError", message.into()));
        }
        let done = py.detach(|| {
            let mut vm = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            vm.as_mut().map(act)
        });
        match done {
            Some(result) => result.map_err(to_python),
            None => Err(named("SandboxClosed", "this sandbox was closed".into())),
        }
    }
}

#[pymethods]
impl MicroVm {
    #[new]
    fn new(py: Python<'_>, image: PathBuf, memory_bytes: u64) -> PyResult<Self> {
        let vm = py
            .detach(|| micro_vm::MicroVm::boot(GuestImage::read(&image)?, VmSize { memory_bytes }))
            .map_err(to_python)?;
        let (isolation, times) = (vm.isolation(), vm.start_times());
        Ok(Self {
            hypervisor: isolation.hypervisor.to_string(),
            privilege_ring: isolation.privilege_ring,
            boot_seconds: times.boot.as_secs_f64(),
            snapshot_seconds: times.snapshot.as_secs_f64(),
            known_pages: vm.known_pages(),
            inner: Mutex::new(Some(vm)),
            process: process::id(),
        })
    }

    #[getter]
    fn hypervisor(&self) -> &str {
        &self.hypervisor
    }

    #[getter]
    fn privilege_ring(&self) -> u64 {
        self.privilege_ring
    }

    #[getter]
    fn boot_seconds(&self) -> f64 {
        self.boot_seconds
    }

    #[getter]
    fn snapshot_seconds(&self) -> f64 {
        self.snapshot_seconds
    }

    #[getter]
    fn known_pages(&self) -> u64 {
        self.known_pages
    }

    /// Brings the clean snapshot back; seconds it took.
    fn restore(&self, py: Python<'_>) -> PyResult<f64> {
        self.with(py, |vm| Ok(vm.restore()?.as_secs_f64()))
    }

    #[pyo3(signature = (code, *, inputs, seconds, memory_bytes, output_bytes, host_calls, stop, dispatch, tools, on_call, session, agent, warm))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of a private function")]
    fn run(
        &self,
        py: Python<'_>,
        code: String,
        inputs: Vec<(String, Vec<u8>)>,
        seconds: f64,
        memory_bytes: u64,
        output_bytes: u64,
        host_calls: u32,
        stop: &Stop,
        dispatch: Option<Py<PyAny>>,
        tools: Vec<String>,
        on_call: Option<Py<PyAny>>,
        session: Option<&FetchSession>,
        agent: Option<String>,
        warm: bool,
    ) -> PyResult<RunReport> {
        let services = Arc::new(PythonServices {
            dispatch,
            on_call,
            session: session.map(|session| Arc::clone(&session.inner)),
            agent,
            tools,
            failure: Mutex::new(None),
        });
        let request = RunRequest {
            code,
            inputs,
            limits: RunLimits {
                wall: Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX),
                memory_bytes,
                output_bytes,
                host_calls,
            },
            services: Arc::clone(&services) as Arc<dyn run::HostServices>,
            stop: Arc::clone(&stop.inner),
        };
        let report = self.with(py, |vm| {
            *stop.wake.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(vm.waker()));
            let report = if warm { vm.run_warm(request, Duration::ZERO) } else { vm.run(request) };
            *stop.wake.lock().unwrap_or_else(PoisonError::into_inner) = None;
            report
        })?;
        match services.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(error) => Err(error),
            None => Ok(RunReport { inner: report }),
        }
    }

    /// Gives the virtual machine back. A run under way comes to its end first.
    fn close(&self, py: Python<'_>) {
        if self.process == process::id() {
            py.detach(|| drop(self.inner.lock().unwrap_or_else(PoisonError::into_inner).take()));
        }
    }
}

/// What became of a run.
#[pyclass(frozen, module = "wcpod._bridge")]
pub struct RunReport {
    inner: run::RunReport,
}

#[pymethods]
impl RunReport {
    #[getter]
    fn kind(&self) -> &'static str {
        self.inner.kind.as_str()
    }

    #[getter]
    fn exit_code(&self) -> i32 {
        self.inner.exit_code
    }

    #[getter]
    fn stdout(&self) -> String {
        run::RunReport::text_of(&self.inner.stdout)
    }

    #[getter]
    fn stderr(&self) -> String {
        run::RunReport::text_of(&self.inner.stderr)
    }

    /// Bytes written to standard output and standard error, and bytes of each that were left out.
    #[getter]
    fn output_bytes(&self) -> (u64, u64, u64, u64) {
        let (out, err) = (&self.inner.stdout, &self.inner.stderr);
        (out.written, out.omitted(), err.written, err.omitted())
    }

    #[getter]
    fn value(&self) -> Option<&str> {
        self.inner.value.as_deref()
    }

    #[getter]
    fn detail(&self) -> Option<&str> {
        self.inner.detail.as_deref()
    }

    #[getter]
    fn files<'py>(&self, py: Python<'py>) -> Vec<(String, Bound<'py, PyBytes>)> {
        self.inner.files.iter().map(|(path, content)| (path.clone(), PyBytes::new(py, content))).collect()
    }

    #[getter]
    fn calls(&self) -> Vec<CallRecord> {
        self.inner.calls.iter().cloned().map(CallRecord::from).collect()
    }

    #[getter]
    fn seconds(&self) -> f64 {
        self.inner.duration.as_secs_f64()
    }

    #[getter]
    fn restore_seconds(&self) -> f64 {
        self.inner.restore.as_secs_f64()
    }

    #[getter]
    fn dirtied_pages(&self) -> u64 {
        self.inner.dirtied_pages
    }

    #[getter]
    fn peak_memory(&self) -> u64 {
        self.inner.peak_memory
    }
}
