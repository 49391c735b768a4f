//! The bytes of one writable file, in chunks: it grows without moving, and may have holes.
use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry as Slot;
use alloc::vec::Vec;
use core::ops::Range;

/// Bytes of a chunk, the unit in which files use up the limit.
pub(super) const CHUNK: usize = 4096;

/// A chunk that was never written is absent, and reads as zeroes.
#[derive(Default)]
pub(super) struct Content {
    chunks: BTreeMap<u64, Vec<u8>>,
    length: u64,
}

/// There is no memory for it.
pub(super) struct OutOfSpace;

/// The piece of one chunk that a position falls in: its number, and the range inside of it.
fn piece(at: u64, left: usize) -> (u64, Range<usize>) {
    let within = (at % CHUNK as u64) as usize;
    (at / CHUNK as u64, within..within + left.min(CHUNK - within))
}

impl Content {
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// The bytes that the file holds in memory.
    pub(super) fn held(&self) -> u64 {
        self.chunks.len() as u64 * CHUNK as u64
    }

    /// Fills `into` from `offset`, and says how much there was.
    pub(super) fn read(&self, offset: u64, into: &mut [u8]) -> usize {
        let length = self.length.saturating_sub(offset).min(into.len() as u64) as usize;
        let mut done = 0;
        while done < length {
            let (number, range) = piece(offset + done as u64, length - done);
            let target = &mut into[done..done + range.len()];
            done += range.len();
            match self.chunks.get(&number) {
                Some(chunk) => target.copy_from_slice(&chunk[range]),
                None => target.fill(0),
            }
        }
        length
    }

    /// Writes all of `bytes` at `offset`, if the chunks that have to be made for it fit in `space`
    /// bytes.
    pub(super) fn write(&mut self, offset: u64, bytes: &[u8], space: u64) -> Result<(), OutOfSpace> {
        let end = offset.checked_add(bytes.len() as u64).ok_or(OutOfSpace)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let numbers = offset / CHUNK as u64..end.div_ceil(CHUNK as u64);
        let missing = numbers.filter(|number| !self.chunks.contains_key(number)).count();
        if missing as u64 * CHUNK as u64 > space {
            return Err(OutOfSpace);
        }
        let mut done = 0;
        while done < bytes.len() {
            let (number, range) = piece(offset + done as u64, bytes.len() - done);
            let source = &bytes[done..done + range.len()];
            done += range.len();
            self.chunk(number)?[range].copy_from_slice(source);
        }
        self.length = self.length.max(end);
        Ok(())
    }

    /// Cuts the file, or lengthens it by a hole.
    pub(super) fn set_length(&mut self, length: u64) {
        if length < self.length {
            drop(self.chunks.split_off(&length.div_ceil(CHUNK as u64)));
            let (number, range) = piece(length, 0);
            if let Some(last) = self.chunks.get_mut(&number) {
                last[range.start..].fill(0);
            }
        }
        self.length = length;
    }

    fn chunk(&mut self, number: u64) -> Result<&mut [u8], OutOfSpace> {
        match self.chunks.entry(number) {
            Slot::Occupied(chunk) => Ok(chunk.into_mut()),
            Slot::Vacant(slot) => {
                let mut chunk = Vec::new();
                chunk.try_reserve_exact(CHUNK).map_err(|_| OutOfSpace)?;
                chunk.resize(CHUNK, 0);
                Ok(slot.insert(chunk))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const SPACE: u64 = 1 << 20;

    fn content(bytes: &[u8]) -> Content {
        let mut content = Content::default();
        assert!(content.write(0, bytes, SPACE).is_ok());
        content
    }

    fn all(content: &Content) -> Vec<u8> {
        let mut bytes = vec![0xee; content.length() as usize + 10];
        let length = content.read(0, &mut bytes);
        bytes.truncate(length);
        bytes
    }

    #[test]
    fn writes_across_chunks() {
        let text: Vec<u8> = (0..CHUNK * 2 + 5).map(|n| n as u8).collect();
        let content = content(&text);
        assert_eq!(all(&content), text);
        assert_eq!(content.held(), 3 * CHUNK as u64);
    }

    #[test]
    fn a_hole_reads_as_zeroes_and_holds_nothing() {
        let mut content = Content::default();
        assert!(content.write(5 * CHUNK as u64 + 1, b"x", SPACE).is_ok());
        assert_eq!(content.held(), CHUNK as u64);
        let bytes = all(&content);
        assert_eq!(bytes.len(), 5 * CHUNK + 2);
        assert!(bytes[..bytes.len() - 1].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn cut_bytes_do_not_come_back() {
        let mut content = content(b"secret");
        content.set_length(2);
        content.set_length(6);
        assert_eq!(all(&content), b"se\0\0\0\0");
    }

    #[test]
    fn says_when_the_space_is_used_up() {
        let mut content = Content::default();
        assert!(content.write(0, &[1; CHUNK + 1], CHUNK as u64).is_err());
        assert!(content.write(0, &[1; CHUNK], CHUNK as u64).is_ok());
        assert!(content.write(0, &[2; CHUNK], 0).is_ok());
        assert!(content.write(u64::MAX, b"xx", SPACE).is_err());
    }
}
