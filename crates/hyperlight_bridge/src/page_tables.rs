//! Whether a run left its page tables as an honest guest does.
//!
//! A hypervisor that runs guests on shadow tables (`kvm_pvm`, or KVM with nested paging switched off) follows what the guest
//! writes into its tables, but not what the host writes there at a restore. A mapping that a run put into the shadow would
//! then still hold in the next run, although the restored tables say otherwise. Mappings of scratch go when its content is
//! thrown away; a mapping of another page of the snapshot stays. No honest guest makes one: it only ever maps fresh pages
//! of scratch, in place of a page or where there was none. So the host looks at the tables that a run left, and a virtual
//! machine in which anything else is found is not used again.
use std::ops::Range;

use crate::error::BridgeError;
use crate::scratch::{PAGE, Scratch, from_end};

const PRESENT: u64 = 1;
const LARGE: u64 = 1 << 7;
const FRAME: u64 = 0x000f_ffff_ffff_f000;
const LEVELS: u32 = 4;
/// More new tables than a run needs that fills the largest memory (3 GiB, a table for each 2 MiB).
const MOST_NEW_TABLES: u32 = 4096;

type Table = [u8; PAGE as usize];

/// The tables that the clean state has.
pub(crate) struct PageTables {
    /// Guest-physical address of the root.
    pub root: u64,
    /// Guest-physical address of the first byte of `bytes`.
    pub begin: u64,
    /// The tables, and pages behind them of which some are tables.
    pub bytes: Vec<u8>,
    /// Size of the tables that lie side by side at the begin.
    pub dense: usize,
    /// Guest-physical addresses of scratch.
    pub scratch: Range<u64>,
}

impl PageTables {
    /// Whether all that changed in the tables since are mappings of scratch.
    pub fn are_honest(&self, scratch: &Scratch) -> Result<bool, BridgeError> {
        let mut now = vec![0; self.dense];
        scratch.read(from_end(self.begin), &mut now)?;
        let mut look =
            Look { before: self, now, left: MOST_NEW_TABLES, read: &|gpa, table| scratch.read(from_end(gpa), table) };
        look.compare(self.root, LEVELS)
    }
}

struct Look<'a> {
    before: &'a PageTables,
    now: Vec<u8>,
    left: u32,
    read: &'a dyn Fn(u64, &mut Table) -> Result<(), BridgeError>,
}

impl Look<'_> {
    /// A table that the clean state has.
    fn compare(&mut self, gpa: u64, level: u32) -> Result<bool, BridgeError> {
        let Some(before) = page(&self.before.bytes, self.before.begin, gpa) else { return Ok(false) };
        let mut other = [0; PAGE as usize];
        let now = match page(&self.now, self.before.begin, gpa) {
            Some(now) => now,
            None => {
                (self.read)(gpa, &mut other)?;
                &other
            }
        };
        if level == 1 && before == now {
            return Ok(true);
        }
        let now = *now;
        for (old, new) in entries(before).zip(entries(&now)) {
            if new & PRESENT == 0 {
                continue;
            }
            let same = old & PRESENT != 0 && (old ^ new) & FRAME == 0;
            let honest = match (same, level) {
                (true, 1) => true,
                (true, _) => new & LARGE == 0 && self.compare(new & FRAME, level - 1)?,
                (false, _) => self.is_fresh(new, level)?,
            };
            if !honest {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// An entry that the clean state does not have: whether it leads to scratch alone.
    fn is_fresh(&mut self, entry: u64, level: u32) -> Result<bool, BridgeError> {
        let frame = entry & FRAME;
        if !self.before.scratch.contains(&frame) {
            return Ok(false);
        }
        if level == 1 {
            return Ok(true);
        }
        if entry & LARGE != 0 || self.left == 0 {
            return Ok(false);
        }
        self.left -= 1;
        let mut table = [0; PAGE as usize];
        (self.read)(frame, &mut table)?;
        for entry in entries(&table) {
            if entry & PRESENT != 0 && !self.is_fresh(entry, level - 1)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn page(bytes: &[u8], begin: u64, gpa: u64) -> Option<&Table> {
    let offset = usize::try_from(gpa.checked_sub(begin)?).ok()?;
    bytes.get(offset..offset.checked_add(PAGE as usize)?)?.first_chunk()
}

fn entries(table: &Table) -> impl Iterator<Item = u64> {
    table.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: u64 = 0x10_0000;
    const USER: u64 = 4;
    /// A page of the snapshot, and one of scratch behind the tables.
    const SNAPSHOT: u64 = 0x5000;
    const FREE: u64 = ROOT + 8 * PAGE;

    /// Root, level 3, level 2, level 1, one after the other; the last maps `SNAPSHOT` at index 7.
    fn tables() -> Vec<u8> {
        let mut bytes = vec![0; 4 * PAGE as usize];
        for level in 0..3 {
            put(&mut bytes, level, 3, (ROOT + (level as u64 + 1) * PAGE) | PRESENT);
        }
        put(&mut bytes, 3, 7, SNAPSHOT | PRESENT);
        bytes
    }

    fn put(bytes: &mut [u8], table: usize, index: usize, entry: u64) {
        let at = table * PAGE as usize + index * 8;
        bytes[at..at + 8].copy_from_slice(&entry.to_le_bytes());
    }

    /// Looks at changed tables; `others` are tables that the guest made at addresses of its choice.
    fn honest(change: impl FnOnce(&mut Vec<u8>), others: &[(u64, Table)]) -> bool {
        let before =
            PageTables { root: ROOT, begin: ROOT, bytes: tables(), dense: 4096 * 4, scratch: ROOT..ROOT + 64 * PAGE };
        let mut now = tables();
        change(&mut now);
        let read = |gpa, table: &mut Table| {
            *table = others.iter().find(|(at, _)| *at == gpa).map_or([0; 4096], |(_, table)| *table);
            Ok(())
        };
        Look { before: &before, now, left: 3, read: &read }.compare(ROOT, LEVELS).unwrap()
    }

    fn table(entries: &[(usize, u64)]) -> Table {
        let mut table = vec![0; PAGE as usize];
        for (index, entry) in entries {
            put(&mut table, 0, *index, *entry);
        }
        table.try_into().unwrap()
    }

    #[test]
    fn what_an_honest_guest_does_is_let_through() {
        assert!(honest(|_| (), &[]));
        assert!(honest(|now| put(now, 3, 7, SNAPSHOT | PRESENT | USER), &[]));
        assert!(honest(|now| put(now, 3, 7, FREE | PRESENT), &[]));
        assert!(honest(|now| put(now, 3, 8, FREE | PRESENT), &[]));
        assert!(honest(|now| put(now, 3, 7, 0), &[]));
        let new = [(FREE, table(&[(1, (FREE + PAGE) | PRESENT)]))];
        assert!(honest(|now| put(now, 2, 9, FREE | PRESENT), &new));
    }

    #[test]
    fn another_page_of_the_snapshot_is_found_wherever_it_is_mapped() {
        let foreign = (SNAPSHOT + PAGE) | PRESENT;
        assert!(!honest(|now| put(now, 3, 7, foreign), &[]));
        assert!(!honest(|now| put(now, 3, 8, foreign), &[]));
        assert!(!honest(|now| put(now, 2, 3, foreign), &[]));
        let new = [(FREE, table(&[(1, foreign)]))];
        assert!(!honest(|now| put(now, 2, 9, FREE | PRESENT), &new));
        assert!(!honest(|now| put(now, 2, 3, FREE | PRESENT), &new));
    }

    #[test]
    fn large_pages_and_trees_without_end_are_not_honest() {
        assert!(!honest(|now| put(now, 2, 9, FREE | PRESENT | LARGE), &[]));
        assert!(!honest(|now| put(now, 2, 3, (ROOT + 3 * PAGE) | PRESENT | LARGE), &[]));
        let itself = [(FREE, table(&[(0, FREE | PRESENT), (1, FREE | PRESENT), (2, FREE | PRESENT)]))];
        assert!(!honest(|now| put(now, 0, 0, FREE | PRESENT), &itself));
        assert!(!honest(|now| put(now, 2, 9, u64::MAX), &[]));
    }
}
