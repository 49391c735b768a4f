//! A micro-VM with a Python interpreter that starts every run from a clean state.
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyperlight_host::{HyperlightError, Sandbox};

use crate::boot::{self, Booted, Built, StartTimes};
use crate::clock;
use crate::error::BridgeError;
use crate::guest_image::GuestImage;
use crate::host_functions::CurrentRun;
use crate::hypervisor::Hypervisor;
use crate::outcome::is_plain;
use crate::output_follower;
use crate::output_window::OutputWindow;
use crate::prepared::{Finding, MOST_STALE, Prepared};
use crate::run::{ActiveRun, CallRecord, Fetched, HostServices, RunLimits, RunReport, RunRequest, ToolError};
use crate::scratch::OwnScratch;
use crate::snapshot::{Facts, Snapshot};
use crate::verdict::judge;
use crate::watchdog::Watchdog;

/// What one call can carry, with room for its envelope.
const MAX_MESSAGE_BYTES: usize = 3 << 20;
/// Stands for "no limit" of the wall clock.
const A_YEAR: Duration = Duration::from_secs(86_400 * 365);

/// How large a micro-VM is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VmSize {
    /// Most memory that a run's interpreter may have, in bytes.
    pub memory_bytes: u64,
}

/// A micro-VM and the clean state that its runs start from.
pub struct MicroVm {
    // Field order is drop order: these must be gone before the sandbox.
    /// Where its scratch memory is in this process.
    scratch: OwnScratch,
    watchdog: Watchdog,
    sandbox: Sandbox,
    clean: Snapshot,
    current: CurrentRun,
    /// Whether nothing has run since the clean state came back.
    pristine: bool,
    /// Whether what a run does to its page tables could outlive it.
    shadowed: bool,
    /// Whether it was last restored to another state than the one that runs start from, which made the hypervisor forget
    /// all that it had mapped of this one.
    foreign: bool,
    /// Table entries that the shim has yet to write anew.
    stale: Vec<u64>,
    /// Whether the last run was interrupted. Its virtual CPU may hold an exception that it was about to take; Hyperlight has
    /// no way to clear that, and the next run would take it.
    interrupted: bool,
    /// How often a run cost it its virtual machine.
    replaced: u64,
    start_times: StartTimes,
}

impl MicroVm {
    /// Boots `image`, rehearses, and takes the clean state: about half a second.
    ///
    /// # Errors
    /// Those of [`Hypervisor::detect`](crate::Hypervisor::detect), [`BridgeError::BootFailed`],
    /// [`BridgeError::OutputUnreadable`], [`BridgeError::SnapshotFailed`].
    pub fn boot(image: GuestImage, size: VmSize) -> Result<Self, BridgeError> {
        let Booted { built, clean, times } = boot::boot(image, size)?;
        Ok(Self::new(built, clean, times))
    }

    /// Makes one from a clean state: about a millisecond. All that are made from one share its memory.
    ///
    /// # Errors
    /// [`BridgeError::SnapshotFailed`].
    pub fn from_snapshot(clean: &Snapshot) -> Result<Self, BridgeError> {
        clock::begin();
        let begin = Instant::now();
        let built = boot::build(clean)?;
        if let Some(Some(prepared)) = clean.prepared.get() {
            prepared.write(built.scratch.end, &[])?;
        }
        let start_times = StartTimes { boot: Duration::ZERO, snapshot: begin.elapsed() };
        Ok(Self::new(built, clean.clone(), start_times))
    }

    fn new(built: Built, clean: Snapshot, start_times: StartTimes) -> Self {
        let Built { scratch, watchdog, sandbox, current } = built;
        Self {
            scratch,
            watchdog,
            sandbox,
            clean,
            current,
            pristine: true,
            shadowed: Hypervisor::shadows_page_tables(),
            foreign: false,
            stale: Vec::new(),
            interrupted: false,
            replaced: 0,
            start_times,
        }
    }

    /// The state that runs start from.
    #[must_use]
    pub fn clean(&self) -> &Snapshot {
        &self.clean
    }

    /// How often its virtual machine had to be replaced because of what a run left of it; after an interrupt it always is,
    /// which does not count.
    #[must_use]
    pub fn replaced(&self) -> u64 {
        self.replaced
    }

    /// How long the start took.
    #[must_use]
    pub fn start_times(&self) -> StartTimes {
        self.start_times
    }

    /// Something that makes the watchdog look at a stop signal at once.
    pub fn waker(&self) -> impl Fn() + Send + Sync + 'static {
        self.watchdog.waker()
    }

    /// Takes a snapshot of what the last run left.
    ///
    /// # Errors
    /// [`BridgeError::SnapshotFailed`]: also when the last run did not come to its end.
    pub fn capture(&mut self) -> Result<Snapshot, BridgeError> {
        let memory = boot::take(&mut self.sandbox)?;
        if Arc::ptr_eq(&memory, &self.clean.memory) {
            // Nothing has run since the clean state came back.
            return Ok(self.clean.clone());
        }
        boot::restore(&mut self.sandbox, &memory)?;
        self.foreign = true;
        self.pristine = false;
        let facts =
            Facts { first_page: OutputWindow::open(self.scratch.end)?.next_page()?, ..self.clean.facts().clone() };
        Ok(Snapshot::new(memory, facts))
    }

    /// Makes another state the one that runs start from.
    ///
    /// # Errors
    /// [`BridgeError::RestoreFailed`].
    pub fn adopt(&mut self, clean: &Snapshot) -> Result<(), BridgeError> {
        let made = Self::from_snapshot(clean)?;
        *self = Self { start_times: self.start_times, replaced: self.replaced, ..made };
        Ok(())
    }

    /// Brings the clean state back, in a new virtual machine where the last run could reach into the next. Every run does it;
    /// alone it is for measuring.
    ///
    /// # Errors
    /// [`BridgeError::RestoreFailed`], [`BridgeError::SnapshotFailed`].
    pub fn restore(&mut self) -> Result<Duration, BridgeError> {
        let begin = Instant::now();
        if self.interrupted || !self.come_back().unwrap_or(false) {
            let replaced = self.replaced + u64::from(!self.interrupted);
            let made = Self::from_snapshot(&self.clean)?;
            *self = Self { start_times: self.start_times, replaced, ..made };
        }
        self.pristine = true;
        Ok(begin.elapsed())
    }

    /// Whether the clean state could be brought back in the virtual machine that there is.
    fn come_back(&mut self) -> Result<bool, BridgeError> {
        let Some(prepared) = self.clean.prepared.get_or_init(|| Prepared::of(&self.clean).ok()) else {
            return Ok(false);
        };
        if self.foreign {
            self.stale.clear();
        } else if self.shadowed && !self.pristine {
            match prepared.look_at_tables(self.scratch.end)? {
                Finding::Honest { linked, all_written } => {
                    if all_written {
                        self.stale.clear();
                    }
                    self.stale.extend(linked);
                    self.stale.sort_unstable();
                    self.stale.dedup();
                }
                Finding::Dishonest => return Ok(false),
            }
        }
        // Only in ring 3 mode does the shim see every call before the runtime does.
        let most = if self.clean.facts().privilege_ring == 3 { MOST_STALE } else { 0 };
        if self.stale.len() > most {
            return Ok(false);
        }
        boot::restore(&mut self.sandbox, &self.clean.memory)?;
        prepared.write(self.scratch.end, &self.stale)?;
        self.foreign = false;
        Ok(true)
    }

    /// Brings the clean state back unless it is there already; how long that took. To be called before every run, and before
    /// [`Self::waker`].
    ///
    /// # Errors
    /// Those of [`Self::restore`].
    pub fn make_ready(&mut self) -> Result<Duration, BridgeError> {
        if self.pristine { Ok(Duration::ZERO) } else { self.restore() }
    }

    /// Runs code in the state that there is: the clean one after [`Self::make_ready`], which took `restore`.
    ///
    /// # Errors
    /// [`BridgeError::CodeTooLong`], [`BridgeError::InputsTooLarge`], [`BridgeError::CallFailed`],
    /// [`BridgeError::OutputUnreadable`]. Whatever the code does is a report.
    pub fn run(&mut self, request: RunRequest, restore: Duration) -> Result<RunReport, BridgeError> {
        let inputs = encode_inputs(&request.inputs)?;
        if request.code.len() + inputs.len() > MAX_MESSAGE_BYTES {
            return Err(BridgeError::CodeTooLong {
                bytes: request.code.len(),
                limit: MAX_MESSAGE_BYTES - inputs.len(),
            });
        }
        let begin = Instant::now();
        let deadline = begin.checked_add(request.limits.wall).unwrap_or(begin + A_YEAR);
        let memory_bytes = request.limits.memory_bytes.min(self.clean.facts().memory_bytes);
        let limits = RunLimits { memory_bytes, ..request.limits };
        let run = Arc::new(ActiveRun::new(&request, deadline));
        let run_id = rand::random::<u64>();
        let tools = run.services.tool_names();
        self.pristine = false;
        self.current.set(Some(Arc::clone(&run)));
        let (sandbox, watchdog) = (&mut self.sandbox, &self.watchdog);
        let call = || {
            watchdog.watch(&request.stop, deadline, || execute(sandbox, run_id, &limits, tools, inputs, request.code))
        };
        let called = if run.services.wants_output() {
            output_follower::follow(&*run.services, self.scratch.end, run_id, call)
        } else {
            call()
        };
        self.current.set(None);
        let duration = begin.elapsed();
        self.interrupted =
            request.stop.reason().is_some() || matches!(called, Err(HyperlightError::ExecutionCanceledByHost()));
        let window = OutputWindow::open(self.scratch.end)?;
        let [stdout, stderr] = window.read(run_id)?;
        let called = match called {
            Ok(length) => Ok(window.outcome(length)?),
            Err(error) => Err(error),
        };
        let next_page = window.next_page()?;
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
            dirtied_pages: next_page.saturating_sub(self.clean.facts().first_page) / 4096,
            peak_memory: verdict.peak_memory,
        })
    }
}

pub(crate) fn execute(
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

fn encode_inputs(inputs: &[(String, Vec<u8>)]) -> Result<Vec<u8>, BridgeError> {
    let mut names = HashSet::new();
    if let Some((name, _)) = inputs.iter().find(|(name, _)| !is_plain(name) || !names.insert(name)) {
        return Err(BridgeError::InputName { name: name.clone() });
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_lengths_and_bytes() {
        let encoded = encode_inputs(&[("a".into(), b"xy".to_vec())]).unwrap();
        assert_eq!(encoded, [1, 0, 0, 0, b'a', 2, 0, 0, 0, b'x', b'y']);
        let large = encode_inputs(&[("a".into(), vec![0; MAX_MESSAGE_BYTES])]);
        assert!(matches!(large, Err(BridgeError::InputsTooLarge { .. })));
    }
}
