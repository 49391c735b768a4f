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
use std::time::Duration;

use guest_abi::function::guest::KEEP_TOUCHED;
use guest_abi::layout::{
    FAULT_FRAME, NEXT_PAGE, ONLY_PREPARE, PAGE, PREPARED_BYTES, READY, SCRATCH_END_GPA, STALE_COUNT, STALE_ENTRIES,
};
use hyperlight_host::sandbox::snapshot::Snapshot as Memory;

use crate::error::BridgeError;
use crate::machine::Machine;
use crate::page_tables::PageTables;
use crate::scratch::{Bookkeeping, Scratch, begin_of, from_end};

/// What preparing may add to the tables: pages that a run is known to dirty, and a few tables.
const MOST_ADDED: u64 = 4096 * PAGE;
/// Time that preparing may take, also inside an emulated processor.
const LIMIT: Duration = Duration::from_secs(20);

/// What was found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// Nothing but mappings of scratch.
    Honest {
        /// Guest-physical addresses of the entries that link new tables.
        linked: Vec<u64>,
        /// Whether the shim wrote those anew that it was told to; a run may be stopped before.
        all_written: bool,
    },
    /// Something that no honest guest does, or that of one which was stopped before it was prepared.
    Dishonest,
}

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
    /// Has a virtual machine of its own prepare a clean state whose runs may have `memory_bytes` bytes: one that has run code
    /// of others must not.
    pub fn of(memory: &Arc<Memory>, memory_bytes: u64) -> Result<Self, BridgeError> {
        Self::make(&mut Machine::of(memory, memory_bytes)?, memory)
    }

    /// Has the guest prepare `memory`, and keeps what changed. The machine must be restored afterwards.
    pub fn make(machine: &mut Machine, memory: &Arc<Memory>) -> Result<Self, BridgeError> {
        machine.restore(memory)?;
        let scratch = machine.open_scratch()?;
        let restored = scratch.bookkeeping()?;
        let begin = restored.first_table;
        let before = read(&scratch, begin..restored.next_page, restored.bytes)?;
        scratch.write(ONLY_PREPARE.from_end(), &1_u64.to_le_bytes())?;
        // It halts without an answer, which Hyperlight takes for a failure; whether it did its work shows in its memory.
        let _ = machine.call_within::<u64>(LIMIT, KEEP_TOUCHED, ());
        let ([ready], [only_prepare]) = (scratch.words(READY.from_end())?, scratch.words(ONLY_PREPARE.from_end())?);
        // The state may be one that a run left, so none of this is more than the guest's word.
        let next_page = scratch.bookkeeping()?.next_page;
        let added = next_page.wrapping_sub(restored.next_page);
        if ready != 1 || only_prepare != 0 || added > MOST_ADDED || !added.is_multiple_of(PAGE) {
            return Err(unlikely());
        }
        let bytes = read(&scratch, begin..next_page, restored.bytes)?;
        let changed = differences(&before, &bytes);
        let mut shim = vec![0; PREPARED_BYTES];
        scratch.read(FAULT_FRAME.from_end(), &mut shim)?;
        let words = vec![(FAULT_FRAME.from_end(), shim), (NEXT_PAGE.from_end(), next_page.to_le_bytes().to_vec())];
        let tables =
            PageTables { begin, bytes, dense: before.len(), scratch: begin_of(restored.bytes)..SCRATCH_END_GPA };
        Ok(Self { restored, tables, changed, words })
    }

    /// Makes the restored state a prepared one. Only right after a restore of the state that this belongs to. `stale` are
    /// addresses of table entries that the shim must write anew, so that the hypervisor looks at them again.
    pub fn write(&self, scratch: &Scratch, stale: &[u64]) -> Result<(), BridgeError> {
        if scratch.bookkeeping()? != self.restored {
            return Err(BridgeError::RestoreFailed { reason: "scratch is not where it was".into() });
        }
        for range in &self.changed {
            scratch.write(from_end(self.tables.begin + range.start as u64), &self.tables.bytes[range.clone()])?;
        }
        self.words.iter().try_for_each(|(place, bytes)| scratch.write(*place, bytes))?;
        if !stale.is_empty() {
            let addresses: Vec<u8> = stale.iter().flat_map(|address| address.to_le_bytes()).collect();
            scratch.write(STALE_ENTRIES.from_end(), &addresses)?;
            scratch.write(STALE_COUNT.from_end(), &(stale.len() as u64).to_le_bytes())?;
        }
        Ok(())
    }

    /// What a run that began in this state left in the page tables.
    pub fn look_at_tables(&self, scratch: &Scratch) -> Result<Finding, BridgeError> {
        let [stale_count] = scratch.words(STALE_COUNT.from_end())?;
        Ok(match self.tables.look(scratch)? {
            Some(linked) => Finding::Honest { linked, all_written: stale_count == 0 },
            None => Finding::Dishonest,
        })
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
        assert!(differences(&before, &before).is_empty());
    }
}
