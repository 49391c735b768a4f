//! A micro-VM with a Python interpreter that starts every run from a clean state.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use guest_abi::layout::{MOST_STALE, PAGE, RING_3};
use hyperlight_host::HyperlightError;

use crate::boot::{self, Booted, StartTimes};
use crate::clock;
use crate::error::BridgeError;
use crate::guest_calls::{self, Message};
use crate::guest_image::GuestImage;
use crate::hypervisor::Hypervisor;
use crate::interrupt_signal;
use crate::machine::Machine;
use crate::output_window::OutputWindow;
use crate::prepared::Finding;
use crate::run::{ActiveRun, Ended, Kind, RunLimits, RunReport, RunRequest, VmSize};
use crate::scratch::Scratch;
use crate::snapshot::{Facts, Snapshot};
use crate::verdict::{Verdict, judge};

/// Stands for "no limit" of the wall clock.
const A_YEAR: Duration = Duration::from_secs(86_400 * 365);

/// What the last run left of the virtual machine.
enum LastRun {
    /// Nothing has run since the clean state came back.
    Nothing,
    /// The interpreter, still alive.
    Interpreter,
    /// A guest that can do nothing more.
    Wreck(Kind),
    /// The state that was captured of it, which the machine was then restored to. That made the hypervisor forget all that
    /// it had mapped of the clean one.
    Captured(Snapshot),
    /// It was interrupted. Its virtual CPU may hold an exception that it was about to take; Hyperlight has no way to clear
    /// that, and the next run would take it.
    Poisoned,
}

/// Numbers that can be read while a run is under way.
#[derive(Debug, Default)]
pub struct Counters {
    replaced: AtomicU64,
}

impl Counters {
    /// How often the virtual machine had to be replaced because of what a run left of it; after an interrupt it always is,
    /// which does not count.
    #[must_use]
    pub fn replaced(&self) -> u64 {
        self.replaced.load(Ordering::Relaxed)
    }
}

/// A micro-VM and the clean state that its runs start from. To be used, and dropped, by one thread.
pub struct MicroVm {
    machine: Machine,
    clean: Snapshot,
    last_run: LastRun,
    /// Table entries that the shim has yet to write again.
    stale: Vec<u64>,
    /// What went wrong without harm since the last report.
    survived: Vec<String>,
    counters: Arc<Counters>,
    start_times: StartTimes,
}

impl MicroVm {
    /// Boots `image`, rehearses, and takes the clean state: about half a second.
    ///
    /// # Errors
    /// Those of [`Hypervisor::detect`](crate::Hypervisor::detect), [`BridgeError::BootFailed`],
    /// [`BridgeError::OutputUnreadable`], [`BridgeError::SnapshotFailed`].
    pub fn boot(image: GuestImage, size: VmSize) -> Result<Self, BridgeError> {
        let Booted { machine, clean, times } = boot::boot(image, size)?;
        Ok(Self::new(machine, clean, times))
    }

    /// Makes one from a clean state: about a millisecond. All that are made from one share its memory.
    ///
    /// # Errors
    /// [`BridgeError::SnapshotFailed`], [`BridgeError::OutputUnreadable`].
    pub fn from_snapshot(clean: &Snapshot) -> Result<Self, BridgeError> {
        clock::begin();
        let begin = Instant::now();
        let machine = machine_of(clean)?;
        let times = StartTimes { boot: Duration::ZERO, snapshot: begin.elapsed() };
        Ok(Self::new(machine, clean.clone(), times))
    }

    fn new(machine: Machine, clean: Snapshot, start_times: StartTimes) -> Self {
        Self {
            machine,
            clean,
            last_run: LastRun::Nothing,
            stale: Vec::new(),
            survived: Vec::new(),
            counters: Arc::default(),
            start_times,
        }
    }

    /// The state that runs start from.
    #[must_use]
    pub fn clean(&self) -> &Snapshot {
        &self.clean
    }

    /// Numbers that stay readable.
    #[must_use]
    pub fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.counters)
    }

    /// How long the start took.
    #[must_use]
    pub fn start_times(&self) -> StartTimes {
        self.start_times
    }

    /// Notes something that went wrong without harm, for the next report.
    pub fn survive(&mut self, what: String) {
        self.survived.push(what);
    }

    /// Takes a snapshot of what the last run left.
    ///
    /// # Errors
    /// [`BridgeError::SnapshotFailed`]: also when the last run did not end by itself, or left tables that no honest guest
    /// leaves.
    pub fn capture(&mut self) -> Result<Snapshot, BridgeError> {
        let failed = |reason: String| Err(BridgeError::SnapshotFailed { reason });
        match &self.last_run {
            LastRun::Nothing => return Ok(self.clean.clone()),
            LastRun::Captured(snapshot) => return Ok(snapshot.clone()),
            LastRun::Poisoned => return failed("the last run was stopped, so its sandbox is poisoned".into()),
            LastRun::Wreck(kind) => return failed(format!("the last run ended as {:?}", kind.as_str())),
            LastRun::Interpreter => {}
        }
        let scratch = self.machine.open_scratch()?;
        let prepared = self.clean.prepared().map_err(|reason| BridgeError::SnapshotFailed { reason: reason.into() })?;
        if prepared.look_at_tables(&scratch)? == Finding::Dishonest {
            self.last_run = LastRun::Wreck(Kind::Crash);
            return failed("the last run left page tables that no guest of ours leaves".into());
        }
        let memory = self.machine.take()?;
        self.machine.restore(&memory)?;
        let facts = Facts { first_page: scratch.bookkeeping()?.next_page, ..self.clean.facts().clone() };
        let snapshot = Snapshot::new(memory, facts);
        self.last_run = LastRun::Captured(snapshot.clone());
        Ok(snapshot)
    }

    /// Makes another state the one that runs start from.
    ///
    /// # Errors
    /// [`BridgeError::SnapshotFailed`], [`BridgeError::OutputUnreadable`].
    pub fn adopt(&mut self, clean: &Snapshot) -> Result<(), BridgeError> {
        let machine = machine_of(clean)?;
        self.clean = clean.clone();
        self.replace_by(machine);
        Ok(())
    }

    fn replace_by(&mut self, machine: Machine) {
        self.machine = machine;
        self.last_run = LastRun::Nothing;
        self.stale.clear();
    }

    /// Brings the clean state back, in a new virtual machine where the last run could reach into the next. Every run does it;
    /// alone it is for measuring.
    ///
    /// # Errors
    /// [`BridgeError::SnapshotFailed`], [`BridgeError::OutputUnreadable`].
    pub fn restore(&mut self) -> Result<Duration, BridgeError> {
        let begin = Instant::now();
        self.come_back()?;
        Ok(begin.elapsed())
    }

    /// Scratch of a machine that has the clean state.
    fn come_back(&mut self) -> Result<Scratch, BridgeError> {
        if !matches!(self.last_run, LastRun::Poisoned) {
            match self.come_back_here() {
                Ok(scratch) => {
                    self.last_run = LastRun::Nothing;
                    return Ok(scratch);
                }
                Err(reason) => {
                    self.counters.replaced.fetch_add(1, Ordering::Relaxed);
                    self.survived.push(format!("the virtual machine was replaced: {reason}"));
                }
            }
        }
        let machine = machine_of(&self.clean)?;
        self.replace_by(machine);
        self.machine.open_scratch()
    }

    /// Brings the clean state back in the virtual machine that there is. `Err` says why that cannot be.
    fn come_back_here(&mut self) -> Result<Scratch, String> {
        let told = |error: BridgeError| error.to_string();
        let scratch = self.machine.open_scratch().map_err(told)?;
        let prepared = self.clean.prepared()?;
        match self.last_run {
            LastRun::Captured(_) => self.stale.clear(),
            LastRun::Interpreter | LastRun::Wreck(_) if Hypervisor::shadows_page_tables() => {
                match prepared.look_at_tables(&scratch).map_err(told)? {
                    Finding::Honest { linked, all_written } => note_stale(&mut self.stale, linked, all_written),
                    Finding::Dishonest => return Err("its page tables are not those of an honest guest".into()),
                }
            }
            _ => {}
        }
        // Only in ring 3 mode does the shim see every call before the runtime does.
        let most = if self.clean.facts().privilege_ring == RING_3 { MOST_STALE } else { 0 };
        if self.stale.len() > most {
            return Err(format!("it linked {} page tables, at most {most} can be taken care of", self.stale.len()));
        }
        self.machine.restore(&self.clean.memory).map_err(told)?;
        prepared.write(&scratch, &self.stale).map_err(told)?;
        Ok(scratch)
    }

    /// Brings the clean state back unless it is there already, and runs code in it.
    ///
    /// # Errors
    /// [`BridgeError::CodeTooLong`], [`BridgeError::InputsTooLarge`], those about names of inputs,
    /// [`BridgeError::NoInterrupt`], and those of [`Self::restore`]. What happens once the guest was called is a report.
    pub fn run(&mut self, request: RunRequest) -> Result<RunReport, BridgeError> {
        let begin = Instant::now();
        let prepare = |vm: &mut Self| match vm.last_run {
            LastRun::Nothing => Ok((vm.machine.open_scratch()?, Duration::ZERO)),
            _ => Ok((vm.come_back()?, begin.elapsed())),
        };
        self.run_in(request, prepare)
    }

    /// Runs code in the state that the last run left, to measure what a restore costs.
    ///
    /// # Errors
    /// As [`Self::run`].
    #[cfg(feature = "bench")]
    pub fn run_without_restore(&mut self, request: RunRequest) -> Result<RunReport, BridgeError> {
        self.run_in(request, |vm| Ok((vm.machine.open_scratch()?, Duration::ZERO)))
    }

    fn run_in(
        &mut self,
        request: RunRequest,
        prepare: impl FnOnce(&mut Self) -> Result<(Scratch, Duration), BridgeError>,
    ) -> Result<RunReport, BridgeError> {
        let RunRequest { code, inputs, limits, services, stop } = request;
        let tools = services.tools.as_ref().map_or(&[][..], |tools| tools.names());
        let message = Message::new(code, &inputs, tools)?;
        interrupt_signal::check_handler()?;
        let (scratch, restore) = prepare(self)?;
        let window = OutputWindow::of(scratch);
        let begin = Instant::now();
        let deadline = begin.checked_add(limits.wall).unwrap_or(begin + A_YEAR);
        let memory_bytes = limits.memory_bytes.min(self.clean.facts().memory_bytes);
        let run = Arc::new(ActiveRun::new(services, Arc::clone(&stop), deadline, limits.host_calls));
        let run_id = rand::random::<u64>();
        if let Some(events) = &run.services.events {
            events.begin(self.machine.scratch_end(), run_id, &stop);
        }
        stop.wake_with(Some(Box::new(self.machine.waker())));
        self.machine.current.set(Some(Arc::clone(&run)));
        let limits = RunLimits { memory_bytes, ..limits };
        let called = guest_calls::execute(&mut self.machine, &stop, deadline, run_id, &limits, message);
        self.machine.current.set(None);
        let duration = begin.elapsed();
        let interrupted = matches!(called, Err(HyperlightError::ExecutionCanceledByHost()));
        let reason = stop.reason();
        self.last_run = LastRun::Poisoned;
        let [stdout, stderr] = window.read(run_id)?;
        let next_page = window.next_page()?;
        let verdict = match called {
            Ok(length) => judge(Ok(window.outcome(length)?), reason),
            Err(error) => judge(Err(error), reason),
        };
        if !interrupted && reason.is_none() {
            self.last_run = if verdict.alive { LastRun::Interpreter } else { LastRun::Wreck(verdict.kind) };
        }
        if let Some(events) = &run.services.events {
            events.end(deadline, &stop);
        }
        stop.wake_with(None);
        let Ended { calls, survived } = run.end();
        self.survived.extend(survived);
        let Verdict { kind, exit_code, value, files, detail, peak_memory, alive: _ } = verdict;
        Ok(RunReport {
            kind,
            exit_code,
            stdout,
            stderr,
            value,
            files,
            calls,
            detail,
            duration,
            restore,
            dirtied_pages: next_page.saturating_sub(self.clean.facts().first_page) / PAGE,
            peak_memory,
            survived: std::mem::take(&mut self.survived),
        })
    }
}

/// A virtual machine that has the clean state, prepared where it is known how.
fn machine_of(clean: &Snapshot) -> Result<Machine, BridgeError> {
    let machine = Machine::of(&clean.memory, clean.facts().memory_bytes)?;
    if let Some(prepared) = clean.known_prepared() {
        prepared.write(&machine.open_scratch()?, &[])?;
    }
    Ok(machine)
}

/// Adds what a run linked to what is to be written again; what was written, is not to be any more.
fn note_stale(stale: &mut Vec<u64>, linked: Vec<u64>, all_written: bool) {
    if all_written {
        stale.clear();
    }
    stale.extend(linked);
    stale.sort_unstable();
    stale.dedup();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_stay_stale_until_they_were_written() {
        let mut stale = vec![16, 24];
        note_stale(&mut stale, vec![8, 16], false);
        assert_eq!(stale, [8, 16, 24]);
        note_stale(&mut stale, vec![32], true);
        assert_eq!(stale, [32]);
    }
}
