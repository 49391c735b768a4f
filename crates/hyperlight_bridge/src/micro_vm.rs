//! A micro-VM with a Python interpreter: booted once, snapshotted once, restored before every run.
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyperlight_host::sandbox::snapshot::Snapshot;
use hyperlight_host::{HyperlightError, Sandbox, SandboxBuilder};

use crate::clock;
use crate::error::BridgeError;
use crate::guest_image::GuestImage;
use crate::host_functions::{self, CurrentRun};
use crate::hypervisor::Hypervisor;
use crate::outcome::Outcome;
use crate::output_window::{Captured, OutputWindow};
use crate::run::{ActiveRun, CallRecord, Fetched, HostServices, Kind, RunLimits, RunReport, RunRequest, ToolError};
use crate::stop::{Stop, StopReason};
use crate::watchdog::Watchdog;

/// Heap of the guest's runtime, in bytes: Wasmtime's own data and the guest's files, not the interpreter's memory.
const HEAP_BYTES: u64 = 28 << 20;
/// Scratch besides the interpreter's memory: page tables, transport, stacks, output window, copied pages.
const SCRATCH_BYTES: usize = 96 << 20;
/// Transport between host and guest, each way: messages travel in these.
const TRANSPORT_BUFFER_BYTES: usize = 64 << 10;
const TRANSPORT_PAGES: usize = 1024;
const TRANSPORT_QUEUE: usize = 64;
/// What one call can carry, with room for its envelope.
const MAX_MESSAGE_BYTES: usize = 3 << 20;
/// Time that booting may take, also inside an emulated processor.
const BOOT_LIMIT: Duration = Duration::from_secs(120);

/// How large a micro-VM is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VmSize {
    /// Most memory that a run's interpreter may have, in bytes.
    pub memory_bytes: u64,
}

/// Where code runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Isolation {
    /// The hypervisor.
    pub hypervisor: Hypervisor,
    /// 0 or 3: the ring that the guest's interpreter runs in.
    pub privilege_ring: u64,
}

/// Times of the way to the first run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StartTimes {
    /// Creating the virtual machine and starting the interpreter.
    pub boot: Duration,
    /// Rehearsal runs and the snapshot.
    pub snapshot: Duration,
}

/// A booted micro-VM and its clean snapshot.
pub struct MicroVm {
    // Field order is drop order: the watchdog's thread must be gone before the sandbox.
    watchdog: Watchdog,
    sandbox: Sandbox,
    snapshot: Arc<Snapshot>,
    current: CurrentRun,
    window: OutputWindow,
    path: PathBuf,
    isolation: Isolation,
    start_times: StartTimes,
    known_pages: u64,
    /// The guest's next free page right after a restore.
    first_page: u64,
    size: VmSize,
}

impl MicroVm {
    /// Boots `image`, rehearses a run, and takes the clean snapshot.
    ///
    /// # Errors
    /// Those of [`Hypervisor::detect`], [`BridgeError::BootFailed`], [`BridgeError::OutputUnreadable`],
    /// [`BridgeError::SnapshotFailed`].
    pub fn boot(image: GuestImage, size: VmSize) -> Result<Self, BridgeError> {
        let hypervisor = Hypervisor::detect()?;
        clock::begin();
        let begin = Instant::now();
        let (image_path, image_bytes) = image.into_parts();
        let path = image_path.as_path();
        let current = CurrentRun::default();
        let scratch = SCRATCH_BYTES.saturating_add(usize::try_from(size.memory_bytes).unwrap_or(usize::MAX));
        let builder = SandboxBuilder::from_bytes(image_bytes)
            .heap_size(HEAP_BYTES)
            .scratch_size(scratch)
            .g2h_buffer_size(TRANSPORT_BUFFER_BYTES)
            .g2h_pool_pages(TRANSPORT_PAGES)
            .g2h_queue_size(TRANSPORT_QUEUE)
            .h2g_buffer_size(TRANSPORT_BUFFER_BYTES)
            .h2g_pool_pages(TRANSPORT_PAGES)
            .h2g_queue_size(TRANSPORT_QUEUE);
        let mut sandbox =
            host_functions::register(builder, &current).build().map_err(|error| boot_error(path, &error))?;
        let watchdog = Watchdog::start(sandbox.interrupt_handle())
            .map_err(|error| BridgeError::BootFailed { path: path.to_owned(), reason: error.to_string() })?;
        let stop = Arc::new(Stop::default());
        let ring = watchdog
            .watch(&stop, begin + BOOT_LIMIT, || {
                let [a, b, c, d] = rand::random::<[u64; 4]>();
                sandbox.call::<u64>("Boot", (clock::wall_clock_ns(), clock::tsc_hz(), a, b, c, d))
            })
            .map_err(|error| boot_error(path, &error))?;
        let booted = begin.elapsed();
        let window = rehearse(&mut sandbox, &watchdog, path)?;
        let first = take_snapshot(&mut sandbox)?;
        let known_pages = record_known_pages(&mut sandbox, &watchdog, first, path)?;
        let snapshot = take_snapshot(&mut sandbox)?;
        sandbox
            .restore(Arc::clone(&snapshot))
            .map_err(|error| BridgeError::RestoreFailed { reason: error.to_string() })?;
        let first_page = window.next_page()?;
        Ok(Self {
            watchdog,
            sandbox,
            snapshot,
            current,
            window,
            path: path.to_owned(),
            isolation: Isolation { hypervisor, privilege_ring: ring },
            start_times: StartTimes { boot: booted, snapshot: begin.elapsed() - booted },
            known_pages,
            first_page,
            size,
        })
    }

    /// Where code runs.
    #[must_use]
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// How long the start took.
    #[must_use]
    pub fn start_times(&self) -> StartTimes {
        self.start_times
    }

    /// Pages that are copied before a run because every run dirties them.
    #[must_use]
    pub fn known_pages(&self) -> u64 {
        self.known_pages
    }

    /// The image that it runs.
    #[must_use]
    pub fn image_path(&self) -> &Path {
        &self.path
    }

    /// Something that makes the watchdog look at a stop signal at once.
    pub fn waker(&self) -> impl Fn() + Send + Sync + 'static {
        self.watchdog.waker()
    }

    /// Brings the clean snapshot back. Every run does it; alone it is for measuring.
    ///
    /// # Errors
    /// [`BridgeError::RestoreFailed`].
    pub fn restore(&mut self) -> Result<Duration, BridgeError> {
        let begin = Instant::now();
        self.sandbox
            .restore(Arc::clone(&self.snapshot))
            .map_err(|error| BridgeError::RestoreFailed { reason: error.to_string() })?;
        Ok(begin.elapsed())
    }

    /// Restores the clean snapshot and runs code in it.
    ///
    /// # Errors
    /// Those of [`Self::restore`], [`BridgeError::CodeTooLong`], [`BridgeError::InputsTooLarge`],
    /// [`BridgeError::CallFailed`], [`BridgeError::OutputUnreadable`]. Whatever the code does is a report.
    pub fn run(&mut self, request: RunRequest) -> Result<RunReport, BridgeError> {
        let restore = self.restore()?;
        self.run_warm(request, restore)
    }

    /// Runs code in whatever state the last run left. Only for measuring what a restore costs.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_warm(&mut self, request: RunRequest, restore: Duration) -> Result<RunReport, BridgeError> {
        let inputs = encode_inputs(&request.inputs)?;
        if request.code.len() + inputs.len() > MAX_MESSAGE_BYTES {
            return Err(BridgeError::CodeTooLong {
                bytes: request.code.len(),
                limit: MAX_MESSAGE_BYTES - inputs.len(),
            });
        }
        let begin = Instant::now();
        let deadline = begin.checked_add(request.limits.wall).unwrap_or(begin + Duration::from_secs(86_400 * 365));
        let limits =
            RunLimits { memory_bytes: request.limits.memory_bytes.min(self.size.memory_bytes), ..request.limits };
        let run = Arc::new(ActiveRun::new(&request, deadline));
        let run_id = rand::random::<u64>();
        let tools = run.services.tool_names();
        self.current.set(Some(Arc::clone(&run)));
        let sandbox = &mut self.sandbox;
        let called = self
            .watchdog
            .watch(&request.stop, deadline, || execute(sandbox, run_id, &limits, tools, inputs, request.code));
        self.current.set(None);
        let duration = begin.elapsed();
        let [stdout, stderr] = self.window.read(run_id)?;
        let called = match called {
            Ok(length) => Ok(self.window.outcome(length)?),
            Err(error) => Err(error),
        };
        let verdict = judge(called, request.stop.reason())?;
        Ok(RunReport {
            kind: verdict.kind,
            exit_code: verdict.exit_code,
            stdout,
            stderr,
            value: verdict.value,
            files: verdict.files,
            calls: run.take_calls(),
            detail: verdict.detail,
            duration,
            restore,
            dirtied_pages: self.window.next_page()?.saturating_sub(self.first_page) / 4096,
            peak_memory: verdict.peak_memory,
        })
    }
}

fn execute(
    sandbox: &mut Sandbox,
    run_id: u64,
    limits: &RunLimits,
    tools: String,
    inputs: Vec<u8>,
    code: String,
) -> Result<u64, HyperlightError> {
    if !inputs.is_empty() {
        sandbox.call::<u64>("PlaceInputs", inputs)?;
    }
    let [a, b, c, d] = rand::random::<[u64; 4]>();
    sandbox.call::<u64>(
        "Execute",
        (
            run_id,
            clock::wall_clock_ns(),
            clock::tsc_hz(),
            a,
            b,
            c,
            d,
            limits.memory_bytes,
            limits.output_bytes,
            tools,
            code,
        ),
    )
}

fn boot_error(path: &Path, error: &HyperlightError) -> BridgeError {
    match error {
        HyperlightError::NoHypervisorFound() => {
            BridgeError::NoHypervisor { device: crate::hypervisor::KVM_DEVICE.into() }
        }
        HyperlightError::GuestBinVersionMismatch { .. } => {
            BridgeError::ImageVersion { path: path.to_owned(), reason: error.to_string() }
        }
        HyperlightError::ExecutionCanceledByHost() => BridgeError::BootFailed {
            path: path.to_owned(),
            reason: format!("it was not ready after {} seconds", BOOT_LIMIT.as_secs()),
        },
        _ => BridgeError::BootFailed { path: path.to_owned(), reason: error.to_string() },
    }
}

fn take_snapshot(sandbox: &mut Sandbox) -> Result<Arc<Snapshot>, BridgeError> {
    sandbox.snapshot().map_err(|error| BridgeError::SnapshotFailed { reason: error.to_string() })
}

/// What most runs do, so that its one-off work is in the snapshot and its pages are known.
const REHEARSAL: &str = "print(1)";

/// Returns the run's id and the length of its outcome.
fn rehearsal_run(sandbox: &mut Sandbox, watchdog: &Watchdog, path: &Path) -> Result<(u64, u64), BridgeError> {
    let run_id = rand::random::<u64>();
    let limits = RunLimits { wall: BOOT_LIMIT, memory_bytes: u64::MAX, output_bytes: 4096, host_calls: 0 };
    let (tools, inputs, code) = (String::new(), Vec::new(), REHEARSAL.to_owned());
    let stop = Arc::new(Stop::default());
    let length = watchdog
        .watch(&stop, Instant::now() + BOOT_LIMIT, || execute(sandbox, run_id, &limits, tools, inputs, code))
        .map_err(|error| boot_error(path, &error))?;
    Ok((run_id, length))
}

fn rehearse(sandbox: &mut Sandbox, watchdog: &Watchdog, path: &Path) -> Result<OutputWindow, BridgeError> {
    let (run_id, length) = rehearsal_run(sandbox, watchdog, path)?;
    let window = OutputWindow::find(run_id)?;
    let outcome = Outcome::decode(&window.outcome(length)?);
    let [stdout, stderr] = window.read(run_id)?;
    let good = outcome.as_ref().is_ok_and(|outcome| !outcome.trapped && outcome.exit_code == 0);
    if good && stdout.head == b"1\n" {
        return Ok(window);
    }
    let printed = [stdout.head, stderr.head].concat();
    Err(BridgeError::BootFailed {
        path: path.to_owned(),
        reason: format!("its first run gave {outcome:?} and {:?}", String::from_utf8_lossy(&printed)),
    })
}

fn record_known_pages(
    sandbox: &mut Sandbox,
    watchdog: &Watchdog,
    snapshot: Arc<Snapshot>,
    path: &Path,
) -> Result<u64, BridgeError> {
    sandbox.restore(snapshot).map_err(|error| BridgeError::RestoreFailed { reason: error.to_string() })?;
    let failed = |error: HyperlightError| boot_error(path, &error);
    rehearsal_run(sandbox, watchdog, path)?;
    sandbox.call::<u64>("KeepTouched", ()).map_err(failed)
}

fn encode_inputs(inputs: &[(String, Vec<u8>)]) -> Result<Vec<u8>, BridgeError> {
    let bytes: usize = inputs.iter().map(|(name, content)| 8 + name.len() + content.len()).sum();
    if bytes > MAX_MESSAGE_BYTES {
        return Err(BridgeError::InputsTooLarge { bytes, limit: MAX_MESSAGE_BYTES });
    }
    let mut encoded = Vec::with_capacity(bytes);
    for part in inputs.iter().flat_map(|(name, content)| [name.as_bytes(), content]) {
        encoded.extend((part.len() as u32).to_le_bytes());
        encoded.extend(part);
    }
    Ok(encoded)
}

struct Verdict {
    kind: Kind,
    exit_code: i32,
    value: Option<String>,
    files: Vec<(String, Vec<u8>)>,
    detail: Option<String>,
    peak_memory: u64,
}

impl Verdict {
    fn ended(kind: Kind, detail: String) -> Self {
        Self { kind, exit_code: 1, value: None, files: Vec::new(), detail: Some(detail), peak_memory: 0 }
    }
}

/// The verdict: from what the host did and saw, never from what the guest claims about limits.
fn judge(called: Result<Vec<u8>, HyperlightError>, stopped: Option<StopReason>) -> Result<Verdict, BridgeError> {
    let record = match called {
        Ok(record) => record,
        Err(HyperlightError::ExecutionCanceledByHost()) => {
            return Ok(match stopped {
                Some(StopReason::Cancelled) => Verdict::ended(Kind::Cancelled, "the caller gave the run up".into()),
                _ => Verdict::ended(Kind::Timeout, "the run's wall-clock limit was over".into()),
            });
        }
        Err(HyperlightError::GuestAborted(_, message)) => {
            let kind = if message.starts_with("out of scratch memory") {
                Kind::Memory
            } else if message.starts_with("output limit") {
                Kind::Output
            } else {
                Kind::Crash
            };
            return Ok(Verdict::ended(kind, message));
        }
        Err(error) if is_guests_fault(&error) => {
            return Ok(Verdict::ended(Kind::Crash, error.to_string()));
        }
        Err(error) => {
            return Err(BridgeError::CallFailed { reason: error.to_string() });
        }
    };
    let Ok(outcome) = Outcome::decode(&record) else {
        return Ok(Verdict::ended(Kind::Crash, "the guest answered with a malformed outcome".into()));
    };
    let kind = match (outcome.trapped, outcome.memory_denied, outcome.exit_code) {
        (false, _, 0) => Kind::Ok,
        (_, true, _) => Kind::Memory,
        (true, ..) => Kind::Crash,
        (false, ..) => Kind::Error,
    };
    let (value, detail) = match (outcome.trapped, outcome.file_bytes_left_out) {
        (true, _) => (None, outcome.text),
        (false, 0) => (outcome.text, None),
        (false, bytes) => (
            outcome.text,
            Some(format!("the files below /output were left out: {bytes} bytes are too many to bring back")),
        ),
    };
    Ok(Verdict {
        kind,
        exit_code: outcome.exit_code,
        value,
        files: outcome.files,
        detail,
        peak_memory: outcome.peak_memory,
    })
}

/// Errors that a guest can cause by what it does.
fn is_guests_fault(error: &HyperlightError) -> bool {
    matches!(
        error,
        HyperlightError::ExecutionAccessViolation(_)
            | HyperlightError::MemoryAccessViolation(..)
            | HyperlightError::TransportError(_)
            | HyperlightError::GuestError(..)
            | HyperlightError::HyperlightVmError(_)
    )
}

/// Services of a run without host calls.
pub struct NoServices;

impl HostServices for NoServices {
    fn fetch_url(&self, _: String, _: u64, _: String, _: Instant) -> Option<Fetched> {
        None
    }

    fn call_tool(&self, name: &str, _: &str, _: Instant) -> Result<String, ToolError> {
        Err(ToolError { class: "ToolError".into(), message: format!("there is no tool {name:?}") })
    }

    fn tool_names(&self) -> String {
        String::new()
    }

    fn call_ended(&self, _: &CallRecord) {}
}

impl RunReport {
    /// Text of a stream: head, a note about what is missing, tail, cut on whole characters.
    #[must_use]
    pub fn text_of(stream: &Captured) -> String {
        let head = lossless_prefix(&stream.head, !stream.tail.is_empty() && stream.omitted() > 0);
        if stream.omitted() == 0 {
            let whole = [stream.head.as_slice(), &stream.tail].concat();
            return String::from_utf8_lossy(&whole).into_owned();
        }
        let skip = stream.tail.iter().take(3).take_while(|&&byte| byte & 0xc0 == 0x80).count();
        let tail = String::from_utf8_lossy(&stream.tail[skip..]);
        format!("{head}\n[... {} of {} bytes left out ...]\n{tail}", stream.omitted(), stream.written)
    }
}

/// The text of `bytes`; when `cut`, without the begin of a character that the cut went through.
fn lossless_prefix(bytes: &[u8], cut: bool) -> std::borrow::Cow<'_, str> {
    if cut
        && let Err(error) = std::str::from_utf8(bytes)
        && error.error_len().is_none()
    {
        return String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
    }
    String::from_utf8_lossy(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(trapped: u8, denied: u8, exit_code: i32) -> Vec<u8> {
        let mut bytes = vec![trapped, denied, 0];
        bytes.extend(exit_code.to_le_bytes());
        bytes.extend([0; 20]);
        bytes
    }

    fn kind(called: Result<Vec<u8>, HyperlightError>, stopped: Option<StopReason>) -> &'static str {
        judge(called, stopped).unwrap().kind.as_str()
    }

    #[test]
    fn the_verdict_follows_what_the_host_saw() {
        assert_eq!(kind(Ok(record(0, 0, 0)), None), "ok");
        assert_eq!(kind(Ok(record(0, 0, 3)), None), "error");
        assert_eq!(kind(Ok(record(0, 1, 1)), None), "memory");
        assert_eq!(kind(Ok(record(0, 1, 0)), None), "ok");
        assert_eq!(kind(Ok(record(1, 0, 1)), None), "crash");
        assert_eq!(kind(Ok(vec![9]), None), "crash");
        assert_eq!(kind(Err(HyperlightError::ExecutionCanceledByHost()), Some(StopReason::Timeout)), "timeout");
        assert_eq!(kind(Err(HyperlightError::ExecutionCanceledByHost()), Some(StopReason::Cancelled)), "cancelled");
        let aborted = |text: &str| Err(HyperlightError::GuestAborted(11, text.into()));
        assert_eq!(kind(aborted("out of scratch memory rip=0"), None), "memory");
        assert_eq!(kind(aborted("output limit reached"), None), "output");
        assert_eq!(kind(aborted("Exception: PageFault | x"), None), "crash");
    }

    #[test]
    fn a_cut_stream_says_so_on_whole_characters() {
        let text = "世".repeat(10);
        let stream =
            Captured { head: text.as_bytes()[..10].to_vec(), tail: text.as_bytes()[20..].to_vec(), written: 30 };
        assert_eq!(RunReport::text_of(&stream), "世世世\n[... 10 of 30 bytes left out ...]\n世世世");
        let whole =
            Captured { head: text.as_bytes()[..10].to_vec(), tail: text.as_bytes()[10..].to_vec(), written: 30 };
        assert_eq!(RunReport::text_of(&whole), text);
    }

    #[test]
    fn inputs_are_lengths_and_bytes() {
        let encoded = encode_inputs(&[("a".into(), b"xy".to_vec())]).unwrap();
        assert_eq!(encoded, [1, 0, 0, 0, b'a', 2, 0, 0, 0, b'x', b'y']);
        let large = encode_inputs(&[("a".into(), vec![0; MAX_MESSAGE_BYTES])]);
        assert!(matches!(large, Err(BridgeError::InputsTooLarge { .. })));
    }
}
