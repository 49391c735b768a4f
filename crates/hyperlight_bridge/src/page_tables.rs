//! What a run left in its page tables, and whether the next run in the same virtual machine would see it.
//!
//! A hypervisor that runs guests on shadow tables (`kvm_pvm`, or KVM with nested paging switched off) follows what the guest
//! writes into its tables, but not what the host writes there at a restore. What a run put into the shadow would then still
//! hold in the next run, although the restored tables say otherwise:
//!
//! - A mapping of scratch goes when the content of scratch is thrown away.
//! - A new last-level table stays linked. The next run may use the same page as a table for other addresses, and both would
//!   show the same memory. So the entry that linked it is written anew by the guest, which the hypervisor does follow.
//! - A mapping of another page of the snapshot stays. No honest guest makes one: it only ever maps fresh pages of scratch. A
//!   virtual machine in which such a mapping is found is not used again.
use std::collections::HashMap;
use std::ops::Range;

use guest_abi::layout::PAGE;

use crate::error::BridgeError;
use crate::scratch::{Scratch, from_end};

const PRESENT: u64 = 1;
const LARGE: u64 = 1 << 7;
const FRAME: u64 = 0x000f_ffff_ffff_f000;
const LEVELS: u32 = 4;
/// Bits that a run sets in entries without mapping anything else: user, accessed, dirty.
const OF_NO_ACCOUNT: u64 = 4 | 1 << 5 | 1 << 6;
/// More tables than there are after a run that fills the largest memory (3 GiB twice, a table for each 2 MiB).
const MOST_TABLES: u32 = 8192;

const TABLE: usize = PAGE as usize;
/// Read at once.
const READ_BYTES: usize = 16 * TABLE;

type Table = [u8; TABLE];

/// The tables that the clean state has.
pub(crate) struct PageTables {
    /// Guest-physical address of the root, which is the first byte of `bytes`.
    pub begin: u64,
    /// The tables, and pages behind them of which some are tables.
    pub bytes: Vec<u8>,
    /// Size of the tables that lie side by side at the begin.
    pub dense: usize,
    /// Guest-physical addresses of scratch.
    pub scratch: Range<u64>,
}

impl PageTables {
    /// Compares with what is there now: addresses of the entries that link new tables, unless there is anything that an
    /// honest guest does not do.
    pub fn look(&self, scratch: &Scratch) -> Result<Option<Vec<u64>>, BridgeError> {
        let changed = self.changed(scratch)?;
        Look::new(self, changed, &|gpa, table| scratch.read(from_end(gpa), table)).find()
    }

    /// Those of the tables side by side that are not as they were, by address.
    fn changed(&self, scratch: &Scratch) -> Result<HashMap<u64, Table>, BridgeError> {
        let mut changed = HashMap::new();
        let mut buffer = vec![0; READ_BYTES];
        for (index, before) in self.bytes[..self.dense].chunks(READ_BYTES).enumerate() {
            let begin = self.begin + (index * READ_BYTES) as u64;
            let now = &mut buffer[..before.len()];
            scratch.read(from_end(begin), now)?;
            if before != now {
                let tables = before.as_chunks::<TABLE>().0.iter().zip(now.as_chunks::<TABLE>().0);
                let differ = (begin..).step_by(TABLE).zip(tables).filter(|(_, (before, now))| before != now);
                changed.extend(differ.map(|(gpa, (_, now))| (gpa, *now)));
            }
        }
        Ok(changed)
    }

    /// A table, and whether it is one of those side by side.
    fn table(&self, gpa: u64) -> Option<(&Table, bool)> {
        let offset = usize::try_from(gpa.checked_sub(self.begin)?).ok()?;
        let table = self.bytes.get(offset..offset.checked_add(TABLE)?)?.first_chunk()?;
        Some((table, offset < self.dense))
    }
}

struct Look<'a> {
    before: &'a PageTables,
    changed: HashMap<u64, Table>,
    read: &'a dyn Fn(u64, &mut Table) -> Result<(), BridgeError>,
    linked: Vec<u64>,
    /// Tables that may still be looked at.
    left: u32,
}

impl<'a> Look<'a> {
    fn new(
        before: &'a PageTables,
        changed: HashMap<u64, Table>,
        read: &'a dyn Fn(u64, &mut Table) -> Result<(), BridgeError>,
    ) -> Self {
        Self { before, changed, read, linked: Vec::new(), left: MOST_TABLES }
    }

    fn find(mut self) -> Result<Option<Vec<u64>>, BridgeError> {
        let honest = self.compare(self.before.begin, LEVELS)?;
        Ok(honest.then_some(self.linked))
    }

    /// A table that the clean state has.
    fn compare(&mut self, gpa: u64, level: u32) -> Result<bool, BridgeError> {
        let Some((before, dense)) = self.before.table(gpa) else { return Ok(false) };
        let now = match self.changed.get(&gpa) {
            Some(now) => *now,
            None if dense && level == 1 => return Ok(true),
            None if dense => *before,
            None => self.table(gpa)?,
        };
        if self.left == 0 {
            return Ok(false);
        }
        self.left -= 1;
        for (index, (old, new)) in entries(before).zip(entries(&now)).enumerate() {
            if new & PRESENT == 0 {
                continue;
            }
            let honest = if old & PRESENT == 0 || (old ^ new) & FRAME != 0 {
                if level > 1 {
                    self.linked.push(gpa + 8 * index as u64);
                }
                self.is_fresh(new, level)?
            } else if level > 1 {
                (old ^ new) & !OF_NO_ACCOUNT == 0 && self.compare(new & FRAME, level - 1)?
            } else {
                (old ^ new) & !OF_NO_ACCOUNT == 0 || self.before.scratch.contains(&(new & FRAME))
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
        // Not one of the clean state's either: it would be linked from two places.
        if entry & LARGE != 0 || self.left == 0 || self.before.table(frame).is_some() {
            return Ok(false);
        }
        self.left -= 1;
        for entry in entries(&self.table(frame)?) {
            if entry & PRESENT != 0 && !self.is_fresh(entry, level - 1)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn table(&self, gpa: u64) -> Result<Table, BridgeError> {
        let mut table = [0; TABLE];
        (self.read)(gpa, &mut table)?;
        Ok(table)
    }
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
        let mut bytes = vec![0; 4 * TABLE];
        for level in 0..3 {
            put(&mut bytes, level, 3, (ROOT + (level as u64 + 1) * PAGE) | PRESENT);
        }
        put(&mut bytes, 3, 7, SNAPSHOT | PRESENT);
        bytes
    }

    fn put(bytes: &mut [u8], table: usize, index: usize, entry: u64) {
        let at = table * TABLE + index * 8;
        bytes[at..at + 8].copy_from_slice(&entry.to_le_bytes());
    }

    /// Looks at changed tables; `others` are tables that the guest made at addresses of its choice.
    fn found(change: impl FnOnce(&mut Vec<u8>), others: &[(u64, Table)]) -> Option<Vec<u64>> {
        let bytes = tables();
        let before = PageTables { begin: ROOT, dense: bytes.len(), bytes, scratch: ROOT..ROOT + 64 * PAGE };
        let mut now = tables();
        change(&mut now);
        let addresses = (ROOT..).step_by(TABLE).zip(now.as_chunks::<TABLE>().0);
        let changed = addresses
            .filter(|(gpa, now)| before.table(*gpa).unwrap().0 != *now)
            .map(|(gpa, now)| (gpa, *now))
            .collect();
        let read = |gpa, table: &mut Table| {
            *table = others.iter().find(|(at, _)| *at == gpa).map_or([0; TABLE], |(_, table)| *table);
            Ok(())
        };
        Look { left: 7, ..Look::new(&before, changed, &read) }.find().unwrap()
    }

    fn honest(change: impl FnOnce(&mut Vec<u8>), others: &[(u64, Table)]) -> bool {
        found(change, others).is_some()
    }

    fn table(entries: &[(usize, u64)]) -> Table {
        let mut table = vec![0; TABLE];
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
    }

    #[test]
    fn the_entry_that_links_a_new_table_is_stale() {
        let new = [(FREE, table(&[(1, (FREE + PAGE) | PRESENT)]))];
        let entry = ROOT + 2 * PAGE + 9 * 8;
        assert_eq!(found(|now| put(now, 2, 9, FREE | PRESENT), &new), Some(vec![entry]));
        assert_eq!(found(|now| put(now, 3, 8, FREE | PRESENT), &[]), Some(vec![]));
    }

    #[test]
    fn a_table_of_the_clean_state_linked_a_second_time_is_found() {
        assert!(!honest(|now| put(now, 2, 9, (ROOT + 3 * PAGE) | PRESENT), &[]));
    }

    #[test]
    fn other_rights_to_a_page_of_the_snapshot_are_found() {
        for right in [1 << 1, 1 << 63] {
            assert!(!honest(|now| put(now, 3, 7, SNAPSHOT | PRESENT | right), &[]));
        }
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
    fn any_bytes_are_answered() {
        use rand::{RngExt, SeedableRng, rngs::StdRng};
        let mut random = StdRng::seed_from_u64(1);
        for _ in 0..500 {
            let mut entry = || random.random::<u64>() & !(FRAME | LARGE) | random.random_range(0..70) << 12 | ROOT;
            let others: Vec<_> = (4..64).map(|at| (ROOT + at * PAGE, table(&[(0, entry()), (511, entry())]))).collect();
            let changes: Vec<_> = (0..8).map(|at| (at % 4, at * 60, entry())).collect();
            found(|now| changes.iter().for_each(|(at, index, entry)| put(now, *at, *index, *entry)), &others);
        }
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
