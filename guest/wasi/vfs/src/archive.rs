//! The read-only part of the file system: a tree that lies in the guest's image and is used where
//! it lies.
//!
//! Layout, all numbers little-endian, made by `guest/component/archive.py`:
//!
//! ```text
//! magic   8 bytes  "WCPODFS1"
//! nodes   u32      number of nodes
//! names   u32      bytes of names
//! node 0 … nodes-1, 16 bytes each:
//!     name_start u32, name_length u16, kind u16 (0 directory, 1 file), start u32, length u32
//! names   UTF-8, without separators
//! data    from the next multiple of 4096
//! ```
//!
//! Node 0 is the root. The children of a directory are the nodes `start … start+length-1`, sorted
//! by the bytes of their names; children come after their parent. A file is the bytes
//! `start … start+length-1` of the data. A look-up touches the few pages that hold the nodes and
//! names of the directories on its path.
use core::cmp::Ordering;
use core::fmt;

const MAGIC: &[u8; 8] = b"WCPODFS1";
const HEADER: usize = 16;
const NODE: usize = 16;
const PAGE: usize = 4096;

/// The bytes given are not an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchiveError;

impl fmt::Display for ArchiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a standard library archive, or a truncated one")
    }
}

impl core::error::Error for ArchiveError {}

/// An archive that was checked to be one; damage inside it shows as missing files.
pub struct Archive {
    nodes: &'static [u8],
    names: &'static [u8],
    data: &'static [u8],
}

/// One file or directory.
#[derive(Clone, Copy)]
pub(super) enum Entry {
    Directory { first: u32, count: u32 },
    File(&'static [u8]),
}

struct Node {
    name: &'static [u8],
    kind: u16,
    start: u32,
    length: u32,
}

impl Archive {
    /// # Errors
    /// [`ArchiveError`] if the header does not fit the bytes.
    pub fn new(bytes: &'static [u8]) -> Result<Self, ArchiveError> {
        Self::parse(bytes).ok_or(ArchiveError)
    }

    fn parse(bytes: &'static [u8]) -> Option<Self> {
        let body = bytes.strip_prefix(MAGIC)?;
        let nodes = (number(body, 0)? as usize).checked_mul(NODE)?;
        let names_start = HEADER.checked_add(nodes)?;
        let names_end = names_start.checked_add(number(body, 4)? as usize)?;
        let archive = Self {
            nodes: bytes.get(HEADER..names_start)?,
            names: bytes.get(names_start..names_end)?,
            data: bytes.get(names_end.next_multiple_of(PAGE)..)?,
        };
        matches!(archive.entry(0), Some(Entry::Directory { .. })).then_some(archive)
    }

    fn node(&self, index: u32) -> Option<Node> {
        let start = (index as usize).checked_mul(NODE)?;
        let node = self.nodes.get(start..start.checked_add(NODE)?)?;
        let name_start = number(node, 0)? as usize;
        let length_and_kind = number(node, 4)?;
        let name_end = name_start.checked_add((length_and_kind & 0xffff) as usize)?;
        Some(Node {
            name: self.names.get(name_start..name_end)?,
            kind: (length_and_kind >> 16) as u16,
            start: number(node, 8)?,
            length: number(node, 12)?,
        })
    }

    pub(super) fn entry(&self, index: u32) -> Option<Entry> {
        let node = self.node(index)?;
        match node.kind {
            0 => Some(Entry::Directory { first: node.start, count: node.length }),
            1 => {
                let start = node.start as usize;
                self.data.get(start..start.checked_add(node.length as usize)?).map(Entry::File)
            }
            _ => None,
        }
    }

    pub(super) fn name(&self, index: u32) -> Option<&'static str> {
        core::str::from_utf8(self.node(index)?.name).ok()
    }

    /// The child of a directory.
    pub(super) fn child(&self, directory: u32, name: &str) -> Option<u32> {
        let Entry::Directory { first, count } = self.entry(directory)? else {
            return None;
        };
        let (mut low, mut high) = (first, first.checked_add(count)?);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.node(middle)?.name.cmp(name.as_bytes()) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                // Children come after their parent, so that no walk goes round in circles.
                Ordering::Equal => return (middle > directory).then_some(middle),
            }
        }
        None
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at.checked_add(4)?)?.try_into().ok().map(u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::archive_bytes;

    #[test]
    fn finds_files_by_name() {
        let archive = Archive::new(archive_bytes()).expect("the sample is an archive");
        let lib = archive.child(0, "lib").expect("lib");
        let hello = archive.child(lib, "hello.py").expect("hello.py");
        assert!(matches!(archive.entry(hello), Some(Entry::File(b"print('hello')\n"))));
        assert_eq!(archive.name(hello), Some("hello.py"));
        for absent in ["", "hello", "hello.pyx", "zzz"] {
            assert!(archive.child(lib, absent).is_none());
        }
        assert!(archive.child(hello, "lib").is_none());
    }

    #[test]
    fn refuses_what_is_not_an_archive() {
        assert!(Archive::new(b"").is_err());
        assert!(Archive::new(b"WCPODFS2\0\0\0\0\0\0\0\0").is_err());
        assert!(Archive::new(b"WCPODFS1\xff\xff\xff\xff\xff\xff\xff\xff").is_err());
        let whole = archive_bytes();
        for end in 0..HEADER + 4 * NODE {
            assert!(Archive::new(&whole[..end]).is_err(), "{end} bytes of it");
        }
    }

    #[test]
    fn damage_is_a_missing_file() {
        for at in 8..archive_bytes().len().min(160) {
            let mut bytes = archive_bytes().to_vec();
            bytes[at] ^= 0xff;
            if let Ok(archive) = Archive::new(bytes.leak()) {
                let _ = archive
                    .child(0, "lib")
                    .and_then(|lib| archive.child(lib, "hello.py"))
                    .map(|i| archive.entry(i).is_some());
            }
        }
    }
}
