//! The sandbox for Python: messages to its thread, and waiting for their answers.
//!
//! Whoever waits looks for signals, so that Ctrl-C and every other handler act at once. Whoever does not want to wait hands
//! over a callable, which gets an `Answer` on the sandbox's thread; it must only pass it on.
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use super::callbacks::{Events, ToolCalls};
use super::error::{named, to_python};
use super::fetch::{AuditLog, FetchSession};
use super::report;
use crate::error::BridgeError;
use crate::guest_image::GuestImage;
use crate::micro_vm::{Counters, MicroVm};
use crate::run::{Pages, RunLimits, RunReport, RunRequest, Services, VmSize};
use crate::sandbox_thread::{Message, Pending, Reply, SandboxThread, Start, Ticket};
use crate::snapshot;
use crate::snapshot_cache::SnapshotCache;
use crate::stop::Stop;

/// Between two looks for signals.
const NAP: Duration = Duration::from_millis(25);
/// How long a signal's exception waits for the guest to stop.
const STOPPING: Duration = Duration::from_millis(150);
/// How long `close` waits for the thread, which may be in a callback.
const CLOSING: Duration = Duration::from_secs(5);

/// SHA-256 of a guest image, after looking whether it is one.
#[pyfunction]
pub fn image_digest(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    py.detach(|| Ok(GuestImage::read(&path)?.digest().to_owned())).map_err(to_python)
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

/// A run as it is asked for, to be used once. `limits` is a `wcpod.Limits`.
#[pyclass(frozen, module = "wcpod._bridge")]
pub struct RunOrder {
    request: Mutex<Option<RunRequest>>,
    agent: Option<String>,
}

#[pymethods]
impl RunOrder {
    #[new]
    #[pyo3(signature = (code, *, inputs, limits, tools, events, session, audit, agent))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of a private class")]
    fn new(
        code: String,
        inputs: Vec<(String, Vec<u8>)>,
        limits: &Bound<'_, PyAny>,
        tools: Option<&ToolCalls>,
        events: Option<&Events>,
        session: Option<&FetchSession>,
        audit: Option<&AuditLog>,
        agent: Option<String>,
    ) -> PyResult<Self> {
        let services = Services {
            pages: session.map(|session| Arc::clone(&session.inner) as Arc<dyn Pages>),
            tools: tools.map(|tools| Arc::clone(&tools.inner)),
            agent: agent.clone(),
            audit: audit.map(|audit| Arc::clone(&audit.inner)),
            events: events.map(|events| Arc::clone(&events.inner)),
        };
        let request =
            RunRequest { code, inputs, limits: limits_of(limits)?, services, stop: Arc::new(Stop::default()) };
        Ok(Self { request: Mutex::new(Some(request)), agent })
    }
}

impl Drop for RunOrder {
    /// Of a run that was never sent.
    fn drop(&mut self) {
        if let Some(request) = self.request.lock().unwrap_or_else(PoisonError::into_inner).take() {
            request.services.end();
        }
    }
}

/// The host core's limits out of a `wcpod.Limits`.
fn limits_of(limits: &Bound<'_, PyAny>) -> PyResult<RunLimits> {
    let seconds: f64 = limits.getattr("seconds")?.extract()?;
    let memory_mib: u64 = limits.getattr("memory_mib")?.extract()?;
    Ok(RunLimits {
        wall: Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX),
        memory_bytes: memory_mib << 20,
        output_bytes: limits.getattr("output_bytes")?.extract()?,
        // A number of Python's has no largest.
        host_calls: limits.getattr("host_calls")?.extract().unwrap_or(u32::MAX),
    })
}

enum Answered {
    Report(Box<RunReport>, Option<String>),
    Captured(snapshot::Snapshot),
    Nothing,
}

/// What a sandbox answered, to be looked at once, on a thread of Python's.
#[pyclass(frozen, module = "wcpod._bridge")]
pub struct Answer {
    inner: Mutex<Option<Result<Answered, BridgeError>>>,
    isolation: Arc<OnceLock<Py<PyAny>>>,
}

#[pymethods]
impl Answer {
    /// The result, the snapshot, or None; and what went wrong without harm, a sentence each.
    fn get(&self, py: Python<'_>) -> PyResult<(Py<PyAny>, Vec<String>)> {
        let taken = self.inner.lock().unwrap_or_else(PoisonError::into_inner).take();
        match taken.unwrap_or(Err(BridgeError::Closed)).map_err(to_python)? {
            Answered::Nothing => Ok((py.None(), Vec::new())),
            Answered::Captured(inner) => Ok((Py::new(py, Snapshot { inner })?.into_any(), Vec::new())),
            Answered::Report(report, agent) => {
                let isolation = self.isolation.get().map_or_else(|| py.None(), |isolation| isolation.clone_ref(py));
                let result = report::result(py, &report, &isolation, agent.as_deref())?;
                Ok((result, report.survived))
            }
        }
    }
}

/// Who takes an answer: a callable of Python's, or somebody who waits.
type Taker = Box<dyn FnOnce(Result<Answered, BridgeError>) + Send>;

/// A micro-VM on its own thread.
#[pyclass(frozen, module = "wcpod._bridge")]
pub struct SandboxCore {
    thread: SandboxThread,
    started: Arc<OnceLock<Start>>,
    isolation: Arc<OnceLock<Py<PyAny>>>,
}

impl SandboxCore {
    fn start(
        py: Python<'_>,
        make: impl FnOnce() -> Result<MicroVm, BridgeError> + Send + 'static,
        done: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let (started, isolation) = (Arc::new(OnceLock::new()), Arc::new(OnceLock::new()));
        let (waits, pending) = taker(done, &isolation);
        let place = Arc::clone(&started);
        let reply: Reply<Start> = Box::new(move |start| {
            waits(start.map(|start| {
                place.get_or_init(|| start);
                Answered::Nothing
            }));
        });
        let thread = SandboxThread::start(make, reply).map_err(to_python)?;
        let core = Self { thread, started, isolation };
        if let Some(mut pending) = pending {
            let close = || core.thread.close();
            await_answer(py, &mut pending, Duration::MAX, close, || false)?.map_err(to_python)?;
        }
        Ok(core)
    }

    fn check(&self) -> PyResult<()> {
        if self.thread.is_own() {
            return Ok(());
        }
        let message = "this sandbox was made in another process: after a fork, make a new one";
        Err(named("SandboxError", message.into()))
    }

    fn started(&self) -> PyResult<&Start> {
        self.started.get().ok_or_else(|| named("SandboxError", "this sandbox has not started".into()))
    }

    /// Makes the `Isolation` of the results, on a thread of Python's.
    fn know_isolation(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        if let Some(known) = self.isolation.get() {
            return Ok(known.clone_ref(py));
        }
        let facts = &self.started()?.facts;
        let made = report::isolation(py, &facts.hypervisor, facts.privilege_ring)?;
        Ok(self.isolation.get_or_init(|| made).clone_ref(py))
    }

    /// Sends a message; waits for its answer unless somebody takes it.
    fn ask(
        &self,
        py: Python<'_>,
        done: Option<Py<PyAny>>,
        wait: Duration,
        message: impl FnOnce(Taker) -> Message,
    ) -> PyResult<Asked> {
        self.check()?;
        let (waits, pending) = taker(done, &self.isolation);
        let ticket = self.thread.send(message(waits)).map_err(to_python)?;
        let Some(mut pending) = pending else { return Ok(Asked::Sent(ticket)) };
        let cancel = || self.thread.cancel(ticket, BridgeError::CancelledInLine);
        let give_up = || self.thread.take_back(ticket, BridgeError::NoTurn { seconds: wait.as_secs_f64() });
        let answered = await_answer(py, &mut pending, wait, cancel, give_up)?;
        let answer = Answer { inner: Mutex::new(Some(answered)), isolation: Arc::clone(&self.isolation) };
        Ok(Asked::Answered(answer))
    }
}

enum Asked {
    Sent(Ticket),
    Answered(Answer),
}

impl Asked {
    /// What the call returns to Python: the number of the message, or its answer.
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self {
            Self::Sent(ticket) => Ok(ticket.number().into_pyobject(py)?.into_any().unbind()),
            Self::Answered(answer) => Ok(Py::new(py, answer)?.into_any()),
        }
    }
}

/// Who takes the answer: `done`, or whoever waits for what is returned.
fn taker(done: Option<Py<PyAny>>, isolation: &Arc<OnceLock<Py<PyAny>>>) -> (Taker, Option<Pending<Answered>>) {
    let Some(done) = done else {
        let (reply, pending) = Pending::new();
        return (reply, Some(pending));
    };
    let mut handing = HandOver { done: Some(done), isolation: Arc::clone(isolation) };
    (Box::new(move |answered| handing.over(answered)), None)
}

/// Hands an answer to a callable of Python's; also one that never came, because the sandbox's thread has panicked.
struct HandOver {
    done: Option<Py<PyAny>>,
    isolation: Arc<OnceLock<Py<PyAny>>>,
}

impl HandOver {
    fn over(&mut self, answered: Result<Answered, BridgeError>) {
        let Some(done) = self.done.take() else { return };
        let isolation = Arc::clone(&self.isolation);
        // Where the interpreter is ending, nobody is left to take it.
        Python::try_attach(|py| {
            let answer = Answer { inner: Mutex::new(Some(answered)), isolation };
            let taken = done.call1(py, (answer,));
            if let Err(error) = taken {
                error.write_unraisable(py, Some(done.bind(py)));
            }
        });
    }
}

impl Drop for HandOver {
    fn drop(&mut self) {
        self.over(Err(BridgeError::Closed));
    }
}

/// Waits for an answer. A signal's handler that raises has the wait end: `cancel` is called, and the exception comes once the
/// guest has stopped, or a moment later. After `wait`, `give_up` is asked once whether the answer can come at once.
fn await_answer<T: Send + 'static>(
    py: Python<'_>,
    pending: &mut Pending<T>,
    wait: Duration,
    cancel: impl Fn() + Sync,
    give_up: impl Fn() -> bool + Sync,
) -> PyResult<Result<T, BridgeError>> {
    let begin = Instant::now();
    let mut raised: Option<(PyErr, Instant)> = None;
    let mut gave_up = false;
    loop {
        let nap = if gave_up { NAP } else { NAP.min(wait.saturating_sub(begin.elapsed())) };
        let answer = py.detach(|| pending.wait(nap));
        match (answer, raised.take()) {
            (Some(answer), None) => return Ok(answer),
            (Some(_), Some((error, _))) => return Err(error),
            (None, Some((error, since))) if since.elapsed() >= STOPPING => return Err(error),
            (None, was) => raised = was,
        }
        if let Err(error) = py.check_signals() {
            raised.get_or_insert((error, Instant::now()));
            py.detach(&cancel);
        }
        if !gave_up && begin.elapsed() >= wait {
            gave_up = true;
            py.detach(&give_up);
        }
    }
}

#[pymethods]
impl SandboxCore {
    /// Boots an image, or takes its clean state from `cache` and leaves it there for the next.
    #[staticmethod]
    #[pyo3(signature = (image, memory_bytes, cache, done=None))]
    fn boot(
        py: Python<'_>,
        image: PathBuf,
        memory_bytes: u64,
        cache: Option<PathBuf>,
        done: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let size = VmSize { memory_bytes };
        Self::start(py, move || boot_or_load(&image, size, cache), done)
    }

    /// Makes one from a clean state.
    #[staticmethod]
    #[pyo3(signature = (snapshot, done=None))]
    fn from_snapshot(py: Python<'_>, snapshot: &Snapshot, done: Option<Py<PyAny>>) -> PyResult<Self> {
        let clean = snapshot.inner.clone();
        Self::start(py, move || MicroVm::from_snapshot(&clean), done)
    }

    /// The `Isolation` of what runs in it.
    #[getter]
    fn isolation(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.know_isolation(py)
    }

    #[getter]
    fn boot_seconds(&self) -> PyResult<f64> {
        Ok(self.started()?.times.boot.as_secs_f64())
    }

    #[getter]
    fn snapshot_seconds(&self) -> PyResult<f64> {
        Ok(self.started()?.times.snapshot.as_secs_f64())
    }

    #[getter]
    fn known_pages(&self) -> PyResult<u64> {
        Ok(self.started()?.facts.known_pages)
    }

    /// How often its virtual machine had to be replaced because of what a run left.
    fn replaced(&self) -> PyResult<u64> {
        let counters: &Counters = &self.started()?.counters;
        Ok(counters.replaced())
    }

    /// The state that runs start from.
    fn clean(&self) -> PyResult<Snapshot> {
        self.check()?;
        let inner = self.thread.clean().ok_or_else(|| to_python(BridgeError::Closed))?;
        Ok(Snapshot { inner })
    }

    /// Runs code from the clean state. Waits `wait` seconds for its turn. Returns an `Answer`, or, with `done`, the number of
    /// the message.
    #[pyo3(signature = (order, wait=None, done=None))]
    fn run(&self, py: Python<'_>, order: &RunOrder, wait: Option<f64>, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.run_as(py, order, wait, done, Message::Run)
    }

    /// Runs code in the state that the last run left, to measure what a restore costs.
    #[cfg(feature = "bench")]
    fn run_without_restore(&self, py: Python<'_>, order: &RunOrder) -> PyResult<Py<PyAny>> {
        self.run_as(py, order, None, None, Message::RunWithoutRestore)
    }

    /// Brings the clean state back; seconds it took.
    fn restore(&self, py: Python<'_>) -> PyResult<f64> {
        let (reply, mut pending) = Pending::new();
        self.check()?;
        let ticket = self.thread.send(Message::Restore(reply)).map_err(to_python)?;
        let cancel = || self.thread.cancel(ticket, BridgeError::CancelledInLine);
        let took = await_answer(py, &mut pending, Duration::MAX, cancel, || false)?;
        Ok(took.map_err(to_python)?.as_secs_f64())
    }

    /// What the last run left.
    #[pyo3(signature = (done=None))]
    fn capture(&self, py: Python<'_>, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        let message = |taker: Taker| Message::Capture(Box::new(move |taken| taker(taken.map(Answered::Captured))));
        self.ask(py, done, Duration::MAX, message)?.into_python(py)
    }

    /// Makes a state the one that runs start from.
    #[pyo3(signature = (snapshot, done=None))]
    fn adopt(&self, py: Python<'_>, snapshot: &Snapshot, done: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        let clean = snapshot.inner.clone();
        let message =
            |taker: Taker| Message::Adopt(clean, Box::new(move |done| taker(done.map(|()| Answered::Nothing))));
        self.ask(py, done, Duration::MAX, message)?.into_python(py)
    }

    /// Takes a message back that waits for its turn, or stops the run that it began.
    fn cancel(&self, py: Python<'_>, number: u64) {
        py.detach(|| self.thread.cancel(Ticket::from(number), BridgeError::CancelledInLine));
    }

    /// Takes a message back that has waited for its turn for `seconds`. Whether it still waited.
    fn take_back(&self, py: Python<'_>, number: u64, seconds: f64) -> bool {
        py.detach(|| self.thread.take_back(Ticket::from(number), BridgeError::NoTurn { seconds }))
    }

    /// Cancels the run under way, refuses what waits, and gives the virtual machine back. With `wait` returns when that is
    /// done, or after some seconds.
    fn close(&self, py: Python<'_>, wait: bool) -> PyResult<()> {
        if !self.thread.is_own() {
            return Ok(());
        }
        py.detach(|| self.thread.close());
        let begin = Instant::now();
        while wait && !py.detach(|| self.thread.wait_closed(Instant::now() + NAP)) && begin.elapsed() < CLOSING {
            py.check_signals()?;
        }
        Ok(())
    }

    /// Whether its thread has ended.
    fn is_closed(&self, py: Python<'_>) -> bool {
        !self.thread.is_own() || py.detach(|| self.thread.wait_closed(Instant::now()))
    }
}

impl SandboxCore {
    fn run_as(
        &self,
        py: Python<'_>,
        order: &RunOrder,
        wait: Option<f64>,
        done: Option<Py<PyAny>>,
        message: impl FnOnce(Box<RunRequest>, Reply<RunReport>) -> Message,
    ) -> PyResult<Py<PyAny>> {
        self.know_isolation(py)?;
        let request = order.request.lock().unwrap_or_else(PoisonError::into_inner).take();
        let request = request.ok_or_else(|| named("SandboxError", "this run was started already".into()))?;
        let agent = order.agent.clone();
        let wait = wait.map_or(Duration::MAX, |wait| Duration::try_from_secs_f64(wait).unwrap_or(Duration::MAX));
        let services = request.services.clone();
        let report = |taker: Taker| {
            let reply = move |report: Result<RunReport, BridgeError>| {
                taker(report.map(|report| Answered::Report(Box::new(report), agent)));
            };
            message(Box::new(request), Box::new(reply))
        };
        let asked = self.ask(py, done, wait, report);
        if asked.is_err() {
            // Nobody else ends what serves a run that was not sent.
            services.end();
        }
        asked?.into_python(py)
    }
}

/// Boots an image, or takes its clean state from a cache and leaves it there for the next. A cache that cannot be used costs
/// time, nothing else.
fn boot_or_load(image: &std::path::Path, size: VmSize, cache: Option<PathBuf>) -> Result<MicroVm, BridgeError> {
    let cache = cache.map(SnapshotCache::at);
    let mut survived = Vec::new();
    let found = cache.as_ref().map_or(Ok(None), |cache| cache.find(image, size));
    match found.and_then(|found| found.map(|found| MicroVm::from_snapshot(&found)).transpose()) {
        Ok(Some(vm)) => return Ok(vm),
        Ok(None) => {}
        Err(error) => survived.push(format!("a kept clean state could not be used: {error}")),
    }
    let mut vm = MicroVm::boot(GuestImage::read(image)?, size)?;
    if let Some(cache) = cache
        && let Err(error) = cache.keep(image, vm.clean())
    {
        survived.push(format!("the clean state could not be kept for the next process: {error}"));
    }
    for what in survived {
        vm.survive(what);
    }
    Ok(vm)
}
