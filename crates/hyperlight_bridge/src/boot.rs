//! From the guest image to the clean state: boot, rehearse, snapshot.
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use guest_abi::function::guest::{BOOT, KEEP_TOUCHED};
use guest_abi::outcome::Outcome;
use hyperlight_host::sandbox::snapshot::Snapshot as Memory;
use hyperlight_host::{HyperlightError, SandboxBuilder};

use crate::clock;
use crate::error::BridgeError;
use crate::guest_calls::{self, Message};
use crate::guest_image::{GuestImage, INTERFACE_VERSION};
use crate::hypervisor::{Hypervisor, KVM_DEVICE};
use crate::machine::{Machine, SCRATCH_BYTES, scratch_bytes};
use crate::output_window::OutputWindow;
use crate::prepared::Prepared;
use crate::run::{RunLimits, VmSize};
use crate::snapshot::{Facts, Snapshot};

/// Heap of the guest's runtime, in bytes: Wasmtime's own data and the guest's files, not the interpreter's memory.
const HEAP_BYTES: u64 = 28 << 20;
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

/// A booted machine, restored to the clean state that was taken of it.
pub(crate) struct Booted {
    pub machine: Machine,
    pub clean: Snapshot,
    pub times: StartTimes,
}

/// Boots `image`, rehearses, and takes the clean state.
pub(crate) fn boot(image: GuestImage, size: VmSize) -> Result<Booted, BridgeError> {
    let hypervisor = Hypervisor::detect()?;
    clock::begin();
    let begin = Instant::now();
    let image_sha256 = image.digest().to_owned();
    let (image_path, image_bytes) = image.into_parts();
    let path = image_path.as_path();
    let mut machine = build(path, image_bytes, size)?;
    let [a, b, c, d] = rand::random::<[u64; 4]>();
    let privilege_ring = machine
        .call_within::<u64>(BOOT_LIMIT, BOOT, (clock::wall_clock_ns(), clock::tsc_hz(), a, b, c, d))
        .map_err(|error| boot_error(path, &error))?;
    let booted = begin.elapsed();
    rehearse(&mut machine, path)?;
    let first = machine.take()?;
    let known_pages = find_known_pages(&mut machine, &first, path)?;
    let memory = machine.take()?;
    let prepared = Prepared::make(&mut machine, &memory)?;
    machine.restore(&memory)?;
    let scratch = machine.open_scratch()?;
    let first_page = scratch.bookkeeping()?.next_page;
    prepared.write(&scratch, &[])?;
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
    let clean = Snapshot::new(memory, facts).with_prepared(prepared);
    Ok(Booted { machine, clean, times })
}

fn build(path: &Path, image: Vec<u8>, size: VmSize) -> Result<Machine, BridgeError> {
    let scratch_size = usize::try_from(scratch_bytes(size.memory_bytes)).unwrap_or(usize::MAX);
    let mut image = Some(image);
    let builder = || {
        // Handed over without a copy; it is read again in the rare case that building must be tried again.
        let bytes = image.take().map_or_else(|| Ok(GuestImage::read(path)?.into_parts().1), Ok)?;
        Ok(SandboxBuilder::from_bytes(bytes)
            .heap_size(HEAP_BYTES)
            .scratch_size(scratch_size)
            .g2h_buffer_size(TRANSPORT_BUFFER_BYTES)
            .g2h_pool_pages(TRANSPORT_PAGES)
            .g2h_queue_size(TRANSPORT_QUEUE)
            .h2g_buffer_size(TRANSPORT_BUFFER_BYTES)
            .h2g_pool_pages(TRANSPORT_PAGES)
            .h2g_queue_size(TRANSPORT_QUEUE))
    };
    Machine::build(size.memory_bytes, builder, |error| boot_error(path, error))
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
fn rehearsal(machine: &mut Machine, path: &Path, code: &str) -> Result<(u64, u64), BridgeError> {
    let run_id = rand::random::<u64>();
    let deadline = Instant::now() + BOOT_LIMIT;
    let called = guest_calls::execute(machine, &Arc::default(), deadline, run_id, &REHEARSAL_LIMITS, Message::of(code));
    Ok((run_id, called.map_err(|error| boot_error(path, &error))?))
}

/// Runs all rehearsals, and makes sure that the output window works.
fn rehearse(machine: &mut Machine, path: &Path) -> Result<(), BridgeError> {
    let (run_id, length) = rehearsal(machine, path, REHEARSALS[0])?;
    let window = OutputWindow::open(machine.scratch_end())?;
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
        rehearsal(machine, path, code)?;
    }
    Ok(())
}

fn find_known_pages(machine: &mut Machine, first: &Arc<Memory>, path: &Path) -> Result<u64, BridgeError> {
    machine.restore(first)?;
    rehearsal(machine, path, REHEARSALS[0])?;
    machine.call_within(BOOT_LIMIT, KEEP_TOUCHED, ()).map_err(|error| boot_error(path, &error))
}
