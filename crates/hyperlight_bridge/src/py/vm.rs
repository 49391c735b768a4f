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
use crate::snapshot;
use crate::snapshot_cache::SnapshotCache;
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

/// A clean state.
#[pyclass(frozen, module = "wcpod._bridge")]
pub struct Snapshot {
    inner: snapshot::Snapshot,
}

#[pymethods]
impl Snapshot {
    #[staticmethod]
    fn load(py: Python<'_>, folder: PathBuf) -> PyResult<Self> {
        Ok(Self { inner: py.detach(|| snapshot::Snapshot::load(&folder)).map_err(to_python)? })
    }

    fn save(&self, py: Python<'_>, folder: PathBuf) -> PyResult<()> {
        py.detach(|| self.inner.save(&folder)).map_err(to_python)
    }

    #[getter]
    fn memory_bytes(&self) -> u64 {
        self.inner.facts().memory_bytes
    }

    #[getter]
    fn image_sha256(&self) -> &str {
        &self.inner.facts().image_sha256
    }
}

/// A micro-VM and the clean state that its runs start from.
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

impl From<micro_vm::MicroVm> for MicroVm {
    fn from(vm: micro_vm::MicroVm) -> Self {
        let (facts, times) = (vm.clean().facts().clone(), vm.start_times());
        Self {
            hypervisor: facts.hypervisor,
            privilege_ring: facts.privilege_ring,
            boot_seconds: times.boot.as_secs_f64(),
            snapshot_seconds: times.snapshot.as_secs_f64(),
            known_pages: facts.known_pages,
            inner: Mutex::new(Some(vm)),
            process: process::id(),
        }
    }
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
    /// Boots an image, or takes its clean state from `cache` and leaves it there for the next.
    #[staticmethod]
    fn boot(py: Python<'_>, image: PathBuf, memory_bytes: u64, cache: Option<PathBuf>) -> PyResult<Self> {
        let size = VmSize { memory_bytes };
        py.detach(|| {
            let cache = cache.map(SnapshotCache::at);
            if let Some(found) = cache.as_ref().and_then(|cache| cache.find(&image, size))
                && let Ok(vm) = micro_vm::MicroVm::from_snapshot(&found)
            {
                return Ok(vm);
            }
            let vm = micro_vm::MicroVm::boot(GuestImage::read(&image)?, size)?;
            if let Some(cache) = cache {
                // A cache that cannot be written to costs time, nothing else.
                let _ = cache.keep(&image, vm.clean());
            }
            Ok(vm)
        })
        .map(Self::from)
        .map_err(to_python)
    }

    /// Makes one from a clean state.
    #[staticmethod]
    fn from_snapshot(py: Python<'_>, snapshot: &Snapshot) -> PyResult<Self> {
        py.detach(|| micro_vm::MicroVm::from_snapshot(&snapshot.inner)).map(Self::from).map_err(to_python)
    }

    /// What the last run left, or the state that runs start from.
    fn capture(&self, py: Python<'_>, clean: bool) -> PyResult<Snapshot> {
        let inner = self.with(py, |vm| if clean { Ok(vm.clean().clone()) } else { vm.capture() })?;
        Ok(Snapshot { inner })
    }

    /// Makes a state the one that runs start from.
    fn adopt(&self, py: Python<'_>, snapshot: &Snapshot) -> PyResult<()> {
        self.with(py, |vm| vm.adopt(&snapshot.inner))
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

    /// How often its virtual machine had to be replaced.
    fn replaced(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |vm| Ok(vm.replaced()))
    }

    /// Brings the clean snapshot back; seconds it took.
    fn restore(&self, py: Python<'_>) -> PyResult<f64> {
        self.with(py, |vm| Ok(vm.restore()?.as_secs_f64()))
    }

    #[pyo3(signature = (code, *, inputs, seconds, memory_bytes, output_bytes, host_calls, stop, dispatch, tools, on_call, on_output, session, agent, warm))]
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
        on_output: Option<Py<PyAny>>,
        session: Option<&FetchSession>,
        agent: Option<String>,
        warm: bool,
    ) -> PyResult<RunReport> {
        let services = Arc::new(PythonServices {
            dispatch,
            on_call,
            on_output,
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
            // Only for measuring what a restore costs, a run may begin in the state that the last one left.
            let restore = if warm { Duration::ZERO } else { vm.make_ready()? };
            *stop.wake.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(vm.waker()));
            let report = vm.run(request, restore);
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
