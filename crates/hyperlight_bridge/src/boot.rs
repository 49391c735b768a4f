//! From the guest image to the clean state: boot, rehearse, snapshot.
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyperlight_host::sandbox::snapshot::Snapshot as Memory;
use hyperlight_host::{HyperlightError, Sandbox, SandboxBuilder};

use crate::clock;
use crate::error::BridgeError;
use crate::guest_image::{GuestImage, INTERFACE_VERSION};
use crate::host_functions::{self, CurrentRun};
use crate::hypervisor::{Hypervisor, KVM_DEVICE};
use crate::micro_vm::{VmSize, execute};
use crate::outcome::Outcome;
use crate::output_window::OutputWindow;
use crate::prepared::Prepared;
use crate::run::RunLimits;
use crate::scratch::{OwnScratch, ScratchEnd};
use crate::snapshot::{Facts, Snapshot};
use crate::stop::Stop;
use crate::watchdog::Watchdog;

/// Heap of the guest's runtime, in bytes: Wasmtime's own data and the guest's files, not the interpreter's memory.
const HEAP_BYTES: u64 = 28 << 20;
/// Scratch besides the interpreter's memory: page tables, transport, stacks, output window, copied pages.
const SCRATCH_BYTES: usize = 96 << 20;
/// Transport between host and guest, each way: messages travel in these.
const TRANSPORT_BUFFER_BYTES: usize = 64 << 10;
const TRANSPORT_PAGES: usize = 1024;
const TRANSPORT_QUEUE: usize = 64;
/// Time that booting may take, also inside an emulated processor.
const BOOT_LIMIT: Duration = Duration::from_secs(120);

/// What is run before the clean state is taken, so that its one-off work is done. The first is also what the known pages are
/// found with.
const REHEARSALS: [&str; 5] = ["print(1)", "print(1)", "1/0", "print(1)", "print(1)"];

const REHEARSAL_LIMITS: RunLimits =
    RunLimits { wall: BOOT_LIMIT, memory_bytes: u64::MAX, output_bytes: 4096, host_calls: 0 };

/// What a clean state depends on besides image, versions and machine; part of the name that it is kept under.
pub(crate) fn recipe() -> String {
    format!(
        "{HEAP_BYTES} {SCRATCH_BYTES} {TRANSPORT_BUFFER_BYTES} {TRANSPORT_PAGES} {TRANSPORT_QUEUE} {}",
        REHEARSALS.join("\n")
    )
}

/// Times of the way to the clean state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StartTimes {
    /// Creating the virtual machine and starting the interpreter.
    pub boot: Duration,
    /// Rehearsals and the snapshot.
    pub snapshot: Duration,
}

/// A booted sandbox, restored to the clean state that was taken of it.
pub(crate) struct Booted {
    pub built: Built,
    pub clean: Snapshot,
    pub times: StartTimes,
}

/// A virtual machine of a clean state.
pub(crate) struct Built {
    pub scratch: OwnScratch,
    pub watchdog: Watchdog,
    pub sandbox: Sandbox,
    pub current: CurrentRun,
}

/// Makes one.
pub(crate) fn build(clean: &Snapshot) -> Result<Built, BridgeError> {
    let failed = |reason: String| BridgeError::SnapshotFailed { reason };
    let current = CurrentRun::default();
    let builder = SandboxBuilder::from_snapshot(Arc::clone(&clean.memory));
    let builder = host_functions::register(builder, &current);
    let (sandbox, scratch) = OwnScratch::of_new(|| builder.build().map_err(|error| failed(error.to_string())))?;
    let watchdog = watchdog(&sandbox).map_err(|error| failed(error.to_string()))?;
    Ok(Built { scratch, watchdog, sandbox, current })
}

/// Boots `image`, rehearses, and takes the clean state.
pub(crate) fn boot(image: GuestImage, size: VmSize) -> Result<Booted, BridgeError> {
    let hypervisor = Hypervisor::detect()?;
    clock::begin();
    let begin = Instant::now();
    let image_sha256 = image.digest().to_owned();
    let (image_path, image_bytes) = image.into_parts();
    let path = image_path.as_path();
    let current = CurrentRun::default();
    let scratch_bytes = SCRATCH_BYTES.saturating_add(usize::try_from(size.memory_bytes).unwrap_or(usize::MAX));
    let builder = SandboxBuilder::from_bytes(image_bytes)
        .heap_size(HEAP_BYTES)
        .scratch_size(scratch_bytes)
        .g2h_buffer_size(TRANSPORT_BUFFER_BYTES)
        .g2h_pool_pages(TRANSPORT_PAGES)
        .g2h_queue_size(TRANSPORT_QUEUE)
        .h2g_buffer_size(TRANSPORT_BUFFER_BYTES)
        .h2g_pool_pages(TRANSPORT_PAGES)
        .h2g_queue_size(TRANSPORT_QUEUE);
    let builder = host_functions::register(builder, &current);
    let (mut sandbox, scratch) = OwnScratch::of_new(|| builder.build().map_err(|error| boot_error(path, &error)))?;
    let watchdog = watchdog(&sandbox)
        .map_err(|error| BridgeError::BootFailed { path: path.to_owned(), reason: error.to_string() })?;
    let stop = Arc::new(Stop::default());
    let privilege_ring = watchdog
        .watch(&stop, begin + BOOT_LIMIT, || {
            let [a, b, c, d] = rand::random::<[u64; 4]>();
            sandbox.call::<u64>("Boot", (clock::wall_clock_ns(), clock::tsc_hz(), a, b, c, d))
        })
        .map_err(|error| boot_error(path, &error))?;
    let booted = begin.elapsed();
    let end = scratch.end;
    rehearse(&mut sandbox, &watchdog, path, end)?;
    let first = take(&mut sandbox)?;
    let known_pages = find_known_pages(&mut sandbox, &watchdog, first, path)?;
    let memory = take(&mut sandbox)?;
    let prepared = Prepared::make(&mut sandbox, &watchdog, &memory, end)?;
    restore(&mut sandbox, &memory)?;
    let first_page = OutputWindow::open(end)?.next_page()?;
    prepared.write(end, &[])?;
    let facts = Facts {
        interface: INTERFACE_VERSION,
        made_by: env!("CARGO_PKG_VERSION").to_owned(),
        image_sha256,
        hypervisor: hypervisor.to_string(),
        privilege_ring,
        memory_bytes: size.memory_bytes,
        known_pages,
        first_page,
    };
    let times = StartTimes { boot: booted, snapshot: begin.elapsed() - booted };
    let clean = Snapshot::new(memory, facts);
    let _ = clean.prepared.set(Some(prepared));
    Ok(Booted { built: Built { scratch, watchdog, sandbox, current }, clean, times })
}

/// A watchdog for a sandbox.
pub(crate) fn watchdog(sandbox: &Sandbox) -> std::io::Result<Watchdog> {
    let handle = sandbox.interrupt_handle();
    Watchdog::start(move || {
        handle.kill();
    })
}

/// Takes a snapshot of the sandbox as it is.
pub(crate) fn take(sandbox: &mut Sandbox) -> Result<Arc<Memory>, BridgeError> {
    sandbox.snapshot().map_err(|error| BridgeError::SnapshotFailed { reason: error.to_string() })
}

/// Brings a snapshot back.
pub(crate) fn restore(sandbox: &mut Sandbox, memory: &Arc<Memory>) -> Result<(), BridgeError> {
    sandbox.restore(Arc::clone(memory)).map_err(|error| BridgeError::RestoreFailed { reason: error.to_string() })
}

fn boot_error(path: &Path, error: &HyperlightError) -> BridgeError {
    match error {
        HyperlightError::NoHypervisorFound() => BridgeError::NoHypervisor { device: KVM_DEVICE.into() },
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

/// Returns the run's id and the length of its outcome.
fn rehearsal(sandbox: &mut Sandbox, watchdog: &Watchdog, path: &Path, code: &str) -> Result<(u64, u64), BridgeError> {
    let run_id = rand::random::<u64>();
    let (tools, inputs, code) = (String::new(), Vec::new(), code.to_owned());
    let stop = Arc::new(Stop::default());
    let length = watchdog
        .watch(&stop, Instant::now() + BOOT_LIMIT, || execute(sandbox, run_id, &REHEARSAL_LIMITS, tools, inputs, code))
        .map_err(|error| boot_error(path, &error))?;
    Ok((run_id, length))
}

/// Runs all rehearsals, and makes sure that the output window works.
fn rehearse(sandbox: &mut Sandbox, watchdog: &Watchdog, path: &Path, end: ScratchEnd) -> Result<(), BridgeError> {
    let (run_id, length) = rehearsal(sandbox, watchdog, path, REHEARSALS[0])?;
    let window = OutputWindow::open(end)?;
    let outcome = Outcome::decode(&window.outcome(length)?);
    let [stdout, stderr] = window.read(run_id)?;
    let good = outcome.as_ref().is_ok_and(|outcome| !outcome.trapped && outcome.exit_code == 0);
    if !good || stdout.head != b"1\n" {
        let printed = [stdout.head, stderr.head].concat();
        return Err(BridgeError::BootFailed {
            path: path.to_owned(),
            reason: format!("its first run gave {outcome:?} and {:?}", String::from_utf8_lossy(&printed)),
        });
    }
    for code in &REHEARSALS[1..] {
        rehearsal(sandbox, watchdog, path, code)?;
    }
    Ok(())
}

fn find_known_pages(
    sandbox: &mut Sandbox,
    watchdog: &Watchdog,
    first: Arc<Memory>,
    path: &Path,
) -> Result<u64, BridgeError> {
    restore(sandbox, &first)?;
    rehearsal(sandbox, watchdog, path, REHEARSALS[0])?;
    sandbox.call::<u64>("KeepTouched", ()).map_err(|error| boot_error(path, &error))
}
