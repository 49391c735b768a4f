//! What the guest's shim makes of a clean state before anything runs, kept by the host and written back after each restore.
//!
//! After a restore the shim puts user bits into the page tables and copies the pages that a run is known to dirty
//! (`guest/shim/paging.c`). Both give the same bytes every time, and cost far more in the guest than here: each page that the
//! guest touches for it is a fault in the hypervisor. So the shim does it once and halts, the pages that it changed are kept,
//! and from then on the host writes them.
//!
//! Nothing of a run gets in: the guest has been restored, and it halts before it looks at what it was called for.
use std::ops::Range;
use std::sync::Arc;

use hyperlight_host::Sandbox;
use hyperlight_host::sandbox::snapshot::Snapshot as Memory;

use crate::boot;
use crate::error::BridgeError;
use crate::micro_vm::execute;
use crate::output_window::OutputWindow;
use crate::page_tables::PageTables;
use crate::scratch::{ALLOCATOR, Bookkeeping, END_GPA, PAGE, Scratch, ScratchEnd, begin_of, from_end};
use crate::snapshot::Snapshot;

/// The shim's prepared frames and its state (`guest/shim/layout.h`), to the end of their page; from the end of scratch.
const FRAMES: u64 = 0x1100;
const FRAMES_BYTES: usize = 0x100;
/// The state (`guest/shim/shim.h`): root, mode, ready, alias, only_prepare.
const STATE: u64 = 0x10c0;
const ONLY_PREPARE: u64 = STATE - 32;

/// The difference between a restored state and a prepared one.
pub(crate) struct Prepared {
    /// What Hyperlight notes at a restore of the state that this belongs to.
    restored: Bookkeeping,
    /// Tables and pages as they are once prepared.
    tables: PageTables,
    /// What of these must be written after a restore.
    changed: Vec<Range<usize>>,
    /// Words of the shim and of Hyperlight: place from the end of scratch, and bytes.
    words: Vec<(u64, Vec<u8>)>,
}

impl Prepared {
    /// Has a virtual machine of its own prepare the clean state: one that has run code of others must not.
    pub fn of(clean: &Snapshot) -> Result<Self, BridgeError> {
        let (mut sandbox, _current) = boot::build(clean)?;
        let run_id = rand::random();
        let (inputs, tools) = (Vec::new(), String::new());
        execute(&mut sandbox, run_id, &boot::REHEARSAL_LIMITS, tools, inputs, "pass".into())
            .map_err(|error| BridgeError::RestoreFailed { reason: error.to_string() })?;
        Self::make(&mut sandbox, &clean.memory, OutputWindow::find(run_id)?)
    }

    /// Has the guest prepare `memory`, and keeps what came of it. The sandbox must be restored afterwards.
    pub fn make(sandbox: &mut Sandbox, memory: &Arc<Memory>, end: ScratchEnd) -> Result<Self, BridgeError> {
        boot::restore(sandbox, memory)?;
        let scratch = end.open(true)?;
        let restored = scratch.bookkeeping()?;
        let begin = restored.first_table;
        let before = read(&scratch, begin..restored.next_page, restored.bytes)?;
        scratch.write(ONLY_PREPARE, &1_u64.to_le_bytes())?;
        // It halts without an answer, which Hyperlight takes for a failure.
        let _ = sandbox.call::<u64>("KeepTouched", ());
        let [root, _, ready, _, only_prepare] = scratch.words(STATE)?;
        if ready != 1 || only_prepare != 0 {
            return Err(unlikely());
        }
        let next_page = scratch.bookkeeping()?.next_page;
        let bytes = read(&scratch, begin..next_page, restored.bytes)?;
        let changed = differences(&before, &bytes);
        let mut shim = vec![0; FRAMES_BYTES];
        scratch.read(FRAMES, &mut shim)?;
        let words = vec![(FRAMES, shim), (ALLOCATOR, next_page.to_le_bytes().to_vec())];
        let tables = PageTables { root, begin, bytes, dense: before.len(), scratch: begin_of(restored.bytes)..END_GPA };
        Ok(Self { restored, tables, changed, words })
    }

    /// Makes the restored state a prepared one. Only right after a restore of the state that this belongs to.
    pub fn write(&self, end: ScratchEnd) -> Result<(), BridgeError> {
        let scratch = end.open(true)?;
        if scratch.bookkeeping()? != self.restored {
            return Err(BridgeError::RestoreFailed { reason: "scratch is not where it was".into() });
        }
        for range in &self.changed {
            scratch.write(from_end(self.tables.begin + range.start as u64), &self.tables.bytes[range.clone()])?;
        }
        self.words.iter().try_for_each(|(place, bytes)| scratch.write(*place, bytes))
    }

    /// Whether a run that began in this state left nothing in the page tables that would reach the next.
    pub fn tables_are_honest(&self, end: ScratchEnd) -> Result<bool, BridgeError> {
        self.tables.are_honest(&end.open(false)?)
    }
}

/// Pages of scratch, unless they are more than there can be.
fn read(scratch: &Scratch, pages: Range<u64>, most: u64) -> Result<Vec<u8>, BridgeError> {
    let count = pages.end.checked_sub(pages.start).filter(|count| *count <= most).ok_or_else(unlikely)?;
    let mut bytes = vec![0; usize::try_from(count).map_err(|_| unlikely())?];
    scratch.read(from_end(pages.start), &mut bytes)?;
    Ok(bytes)
}

fn unlikely() -> BridgeError {
    BridgeError::RestoreFailed { reason: "the guest did not prepare its memory".into() }
}

/// Where `after` is not as `before`: whole pages, neighbours together.
fn differences(before: &[u8], after: &[u8]) -> Vec<Range<usize>> {
    let mut changed: Vec<Range<usize>> = Vec::new();
    for (index, page) in after.chunks(PAGE as usize).enumerate() {
        let begin = index * PAGE as usize;
        let range = begin..begin + page.len();
        if before.get(range.clone()) == Some(page) {
            continue;
        }
        match changed.last_mut() {
            Some(last) if last.end == begin => last.end = range.end,
            _ => changed.push(range),
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_differ_and_new_ones_are_kept() {
        let page = |byte: u8| vec![byte; PAGE as usize];
        let before = [page(1), page(2), page(3), page(4)].concat();
        let after = [page(1), page(9), page(8), page(4), page(7)].concat();
        assert_eq!(differences(&before, &after), [4096..12288, 16384..20480]);
        assert_eq!(differences(&before, &before), []);
    }
}
