//! A virtual machine of Hyperlight: made, called, watched, captured, restored. Knows nothing of runs.
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyperlight_host::func::{ParameterTuple, SupportedReturnType};
use hyperlight_host::sandbox::snapshot::Snapshot as Memory;
use hyperlight_host::{HyperlightError, Sandbox, SandboxBuilder};

use crate::error::BridgeError;
use crate::host_functions::{self, CurrentRun};
use crate::scratch::{self, Scratch, ScratchEnd};
use crate::stop::Stop;
use crate::watchdog::Watchdog;

/// Scratch besides the interpreter's memory: page tables, transport, stacks, output window, copied pages.
pub(crate) const SCRATCH_BYTES: u64 = 96 << 20;
/// Time that taking a snapshot may take: the guest puts its transport in order for it.
const SNAPSHOT_LIMIT: Duration = Duration::from_secs(20);

/// Size of the scratch of a machine whose interpreter may have so much memory, in bytes.
pub(crate) fn scratch_bytes(memory_bytes: u64) -> u64 {
    SCRATCH_BYTES.saturating_add(memory_bytes)
}

/// A virtual machine. To be used, and dropped, by one thread.
pub(crate) struct Machine {
    /// `None` only while it is dropped.
    sandbox: Option<Sandbox>,
    watchdog: Watchdog,
    scratch: ScratchEnd,
    /// The run that its host functions act for.
    pub current: CurrentRun,
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _held = scratch::retire(self.scratch);
        drop(self.sandbox.take());
    }
}

impl Machine {
    /// Makes one out of what `builder` gives, with our host functions, and finds its scratch.
    ///
    /// # Errors
    /// [`BridgeError::OutputUnreadable`], and what `failed` makes of Hyperlight's.
    pub fn build(
        memory_bytes: u64,
        mut builder: impl FnMut() -> Result<SandboxBuilder, BridgeError>,
        failed: impl Fn(&HyperlightError) -> BridgeError,
    ) -> Result<Self, BridgeError> {
        let current = CurrentRun::default();
        let build = || host_functions::register(builder()?, &current).build().map_err(|error| failed(&error));
        let (sandbox, scratch) = scratch::of_new(scratch_bytes(memory_bytes), build)?;
        let handle = sandbox.interrupt_handle();
        let interrupt = move || {
            handle.kill();
        };
        let watchdog = Watchdog::start(interrupt).map_err(|source| {
            scratch::retire(scratch);
            BridgeError::NoThread { source }
        })?;
        Ok(Self { sandbox: Some(sandbox), watchdog, scratch, current })
    }

    /// Makes one of a snapshot of a machine whose interpreter may have `memory_bytes` bytes.
    ///
    /// # Errors
    /// [`BridgeError::SnapshotFailed`], [`BridgeError::OutputUnreadable`].
    pub fn of(memory: &Arc<Memory>, memory_bytes: u64) -> Result<Self, BridgeError> {
        let builder = || Ok(SandboxBuilder::from_snapshot(Arc::clone(memory)));
        Self::build(memory_bytes, builder, |error| BridgeError::SnapshotFailed { reason: error.to_string() })
    }

    /// Its scratch memory, opened. Not to be kept: after a fork it would still be the parent's.
    ///
    /// # Errors
    /// [`BridgeError::OutputUnreadable`].
    pub fn open_scratch(&self) -> Result<Scratch, BridgeError> {
        self.scratch.open()
    }

    /// Where its scratch memory ends.
    pub fn scratch_end(&self) -> ScratchEnd {
        self.scratch
    }

    /// Something that makes the watchdog look at a stop signal at once.
    pub fn waker(&self) -> impl Fn() + Send + Sync + 'static {
        self.watchdog.waker()
    }

    /// Calls a guest function; from `deadline` on, or once `stop` is requested, it is interrupted.
    ///
    /// # Errors
    /// What the guest or Hyperlight did instead of an answer.
    pub fn call<Output: SupportedReturnType>(
        &mut self,
        stop: &Arc<Stop>,
        deadline: Instant,
        function: &str,
        arguments: impl ParameterTuple,
    ) -> Result<Output, HyperlightError> {
        let Some(sandbox) = &mut self.sandbox else { return Err(HyperlightError::Error("dropped".into())) };
        self.watchdog.watch(stop, deadline, || sandbox.call(function, arguments))
    }

    /// As [`Self::call`], where nobody could request a stop.
    ///
    /// # Errors
    /// As there.
    pub fn call_within<Output: SupportedReturnType>(
        &mut self,
        limit: Duration,
        function: &str,
        arguments: impl ParameterTuple,
    ) -> Result<Output, HyperlightError> {
        self.call(&Arc::default(), Instant::now() + limit, function, arguments)
    }

    /// Takes a snapshot of it as it is. The guest has a part in that, so it is watched.
    ///
    /// # Errors
    /// [`BridgeError::SnapshotFailed`].
    pub fn take(&mut self) -> Result<Arc<Memory>, BridgeError> {
        let failed = |error: HyperlightError| BridgeError::SnapshotFailed { reason: error.to_string() };
        let Some(sandbox) = &mut self.sandbox else { return Err(failed(HyperlightError::Error("dropped".into()))) };
        let deadline = Instant::now() + SNAPSHOT_LIMIT;
        self.watchdog.watch(&Arc::default(), deadline, || sandbox.snapshot()).map_err(failed)
    }

    /// Brings a snapshot back.
    ///
    /// # Errors
    /// [`BridgeError::RestoreFailed`].
    pub fn restore(&mut self, memory: &Arc<Memory>) -> Result<(), BridgeError> {
        let failed = |error: HyperlightError| BridgeError::RestoreFailed { reason: error.to_string() };
        let Some(sandbox) = &mut self.sandbox else { return Err(failed(HyperlightError::Error("dropped".into()))) };
        sandbox.restore(Arc::clone(memory)).map_err(failed)
    }
}
