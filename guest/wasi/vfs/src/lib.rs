//! A file system in memory.
//!
//! `/` holds what the archive holds (the standard library below `/lib`), `/tmp` and `/output` to
//! write to, `/input` that only the host fills, and `/dev/null`. Everything outside `/tmp` and
//! `/output` is read-only. There are no links and no permissions.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod archive;
mod content;

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use archive::Entry;
pub use archive::{Archive, ArchiveError};
use content::{Content, OutOfSpace};

/// Longest path, and longest name in it.
const PATH: usize = 4096;
const NAME: usize = 255;

/// What a directory entry costs of the byte limit beside its content.
const ENTRY: u64 = 256;

/// Modification time of what was there from the start: 1980, the oldest that zip files can hold.
const MODIFIED: u64 = 315_532_800_000_000_000;

/// How much the component may leave in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all files together, a file in units of 4 KiB.
    pub bytes: u64,
    /// Files and directories.
    pub files: u32,
    /// Open files and directories.
    pub open: u32,
}

impl Default for Limits {
    /// 32 MiB in 4096 files, 256 of them open.
    fn default() -> Self {
        Self { bytes: 32 << 20, files: 4096, open: 256 }
    }
}

/// Why an operation failed, named after the errno it becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// EBADF: the descriptor was not opened for this.
    BadDescriptor,
    /// EBUSY: `/` and the folders in it stay.
    Busy,
    /// EEXIST
    Exists,
    /// EINVAL
    Invalid,
    /// EISDIR
    IsDirectory,
    /// ENAMETOOLONG
    NameTooLong,
    /// ENOENT
    NoEntry,
    /// ENOSPC: the byte or file limit is reached.
    NoSpace,
    /// ENOTDIR
    NotDirectory,
    /// ENOTEMPTY
    NotEmpty,
    /// EPERM: a path that leaves its base.
    NotPermitted,
    /// EROFS
    ReadOnly,
    /// ENOMEM: too many open files.
    TooManyOpen,
    /// ENOTSUP: links.
    Unsupported,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BadDescriptor => "bad descriptor",
            Self::Busy => "in use",
            Self::Exists => "exists already",
            Self::Invalid => "invalid argument",
            Self::IsDirectory => "is a directory",
            Self::NameTooLong => "name too long",
            Self::NoEntry => "no such file or directory",
            Self::NoSpace => "no space left",
            Self::NotDirectory => "not a directory",
            Self::NotEmpty => "directory not empty",
            Self::NotPermitted => "path leaves its directory",
            Self::ReadOnly => "read-only file system",
            Self::TooManyOpen => "too many open files",
            Self::Unsupported => "not supported",
        })
    }
}

impl core::error::Error for Error {}

impl From<OutOfSpace> for Error {
    fn from(_: OutOfSpace) -> Self {
        Self::NoSpace
    }
}

/// A file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeId(Place);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Archive(u32),
    Memory(u32),
    Null,
}

/// The root directory.
pub const ROOT: NodeId = NodeId(Place::Memory(0));

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `/dev/null`
    Device,
    /// A directory.
    Directory,
    /// A regular file.
    File,
}

/// What is known about a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// What it is.
    pub kind: Kind,
    /// Bytes of a file.
    pub size: u64,
    /// Time of the last change, in nanoseconds since the Unix epoch.
    pub modified: u64,
    /// A number of its own.
    pub inode: u64,
}

/// How to open a path; all false is for reading what exists.
#[derive(Clone, Copy, Debug, Default)]
pub struct Open {
    /// Make it if it is not there.
    pub create: bool,
    /// Fail unless it is a directory.
    pub directory: bool,
    /// With `create`: fail if it is there.
    pub exclusive: bool,
    /// Empty it.
    pub truncate: bool,
    /// It is going to be written to.
    pub write: bool,
}

/// A file that the component left, as the host reads it back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Its path below the folder that was asked for, with `/` between names.
    pub path: Box<str>,
    /// Its size in bytes.
    pub size: u64,
    /// For [`Vfs::read`].
    pub node: NodeId,
}

enum Body {
    Directory(BTreeMap<Box<str>, NodeId>),
    File(Content),
    /// Placed by the host, and read-only.
    Placed(Vec<u8>),
}

struct Node {
    body: Body,
    writable: bool,
    modified: u64,
    /// Descriptors and streams that hold it.
    open: u32,
    /// Whether a directory names it.
    linked: bool,
}

/// The file system.
pub struct Vfs {
    archive: Archive,
    nodes: Vec<Option<Node>>,
    free: Vec<u32>,
    limits: Limits,
    bytes: u64,
    files: u32,
    open: u32,
}

/// The last name of a path, and the directory that holds or will hold it.
struct Parent<'a> {
    directory: NodeId,
    name: &'a str,
}

impl Vfs {
    /// A file system with empty `/input`, `/output` and `/tmp`.
    pub fn new(archive: Archive, limits: Limits) -> Self {
        let mut files = Self { archive, nodes: Vec::new(), free: Vec::new(), limits, bytes: 0, files: 0, open: 0 };
        let root = files.insert(Body::Directory(BTreeMap::new()), false, MODIFIED);
        if let Some(root) = files.node_mut(root) {
            root.linked = true;
        }
        for (name, writable) in [("dev", false), ("input", false), ("output", true), ("tmp", true)] {
            let folder = files.insert(Body::Directory(BTreeMap::new()), writable, MODIFIED);
            files.link(root, name, folder);
        }
        if let Ok(dev) = files.look_up(root, "dev") {
            files.link(dev, "null", NodeId(Place::Null));
        }
        if let Some(Entry::Directory { first, count }) = files.archive.entry(0) {
            for index in (first..).take(count as usize) {
                if let Some(name) = files.archive.name(index) {
                    files.link(root, name, NodeId(Place::Archive(index)));
                }
            }
        }
        files
    }

    /// Changes what the component may leave; what it left already stays.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// The node at a path.
    ///
    /// # Errors
    /// [`Error`]: no entry, not a directory, name too long, or a path that leaves `base`.
    pub fn look_up(&self, base: NodeId, path: &str) -> Result<NodeId, Error> {
        let mut trail = vec![base];
        self.walk(&mut trail, path)
    }

    /// Looks up a path or makes it, and holds the node until [`Self::close`].
    ///
    /// # Errors
    /// As [`Self::look_up`], and what [`Open`] names.
    pub fn open(&mut self, base: NodeId, path: &str, how: Open, now: u64) -> Result<NodeId, Error> {
        if self.open >= self.limits.open {
            return Err(Error::TooManyOpen);
        }
        let node = match self.look_up(base, path) {
            Ok(_) if how.create && how.exclusive => return Err(Error::Exists),
            Ok(node) => node,
            Err(Error::NoEntry) if how.create && !how.directory && !path.ends_with('/') => {
                let parent = self.parent(base, path)?;
                self.make(parent, Body::File(Content::default()), now)?
            }
            Err(error) => return Err(error),
        };
        let directory = matches!(self.stat(node)?.kind, Kind::Directory);
        if !directory && (how.directory || path.ends_with('/')) {
            return Err(Error::NotDirectory);
        }
        if directory && (how.write || how.truncate || how.create) {
            return Err(Error::IsDirectory);
        }
        if how.write || how.truncate {
            self.check_writable(node)?;
        }
        if how.truncate {
            self.set_size(node, 0, now)?;
        }
        self.hold(node)?;
        Ok(node)
    }

    /// Holds a node once more, as a stream on a descriptor does.
    ///
    /// # Errors
    /// [`Error::TooManyOpen`]
    pub fn hold(&mut self, node: NodeId) -> Result<(), Error> {
        // Streams of open descriptors come on top of the descriptors.
        if self.open >= self.limits.open.saturating_mul(3) {
            return Err(Error::TooManyOpen);
        }
        self.open += 1;
        if let Some(node) = self.node_mut(node) {
            node.open += 1;
        }
        Ok(())
    }

    /// Lets go of a node; one that no directory names any more is gone then.
    pub fn close(&mut self, node: NodeId) {
        self.open = self.open.saturating_sub(1);
        if let Some(held) = self.node_mut(node) {
            held.open = held.open.saturating_sub(1);
        }
        self.collect(node);
    }

    /// What is known about a node.
    ///
    /// # Errors
    /// [`Error::NoEntry`] if there is no such node any more.
    pub fn stat(&self, node: NodeId) -> Result<Stat, Error> {
        match node.0 {
            Place::Null => Ok(Stat { kind: Kind::Device, size: 0, modified: MODIFIED, inode: u64::MAX }),
            Place::Archive(index) => {
                let (kind, size) = match self.archive.entry(index).ok_or(Error::NoEntry)? {
                    Entry::Directory { .. } => (Kind::Directory, 0),
                    Entry::File(bytes) => (Kind::File, bytes.len() as u64),
                };
                Ok(Stat { kind, size, modified: MODIFIED, inode: 1 << 32 | u64::from(index) })
            }
            Place::Memory(index) => {
                let found = self.node(node).ok_or(Error::NoEntry)?;
                let (kind, size) = match &found.body {
                    Body::Directory(_) => (Kind::Directory, 0),
                    Body::File(content) => (Kind::File, content.length()),
                    Body::Placed(bytes) => (Kind::File, bytes.len() as u64),
                };
                Ok(Stat { kind, size, modified: found.modified, inode: u64::from(index) + 1 })
            }
        }
    }

    /// The size of a file, 0 of anything else.
    pub fn size(&self, node: NodeId) -> u64 {
        self.stat(node).map_or(0, |stat| stat.size)
    }

    /// At most `length` bytes of a file from `offset` on; none at its end.
    ///
    /// # Errors
    /// [`Error::IsDirectory`]
    pub fn read(&self, node: NodeId, offset: u64, length: usize) -> Result<Vec<u8>, Error> {
        match node.0 {
            Place::Null => Ok(Vec::new()),
            Place::Archive(index) => match self.archive.entry(index).ok_or(Error::NoEntry)? {
                Entry::Directory { .. } => Err(Error::IsDirectory),
                Entry::File(bytes) => Ok(part(bytes, offset, length).to_vec()),
            },
            Place::Memory(_) => match &self.node(node).ok_or(Error::NoEntry)?.body {
                Body::Directory(_) => Err(Error::IsDirectory),
                Body::Placed(bytes) => Ok(part(bytes, offset, length).to_vec()),
                Body::File(content) => {
                    let rest = content.length().saturating_sub(offset);
                    let mut bytes = vec![0; rest.min(length as u64) as usize];
                    content.read(offset, &mut bytes);
                    Ok(bytes)
                }
            },
        }
    }

    /// Writes all of `bytes` into a file at `offset`.
    ///
    /// # Errors
    /// [`Error::NoSpace`], [`Error::ReadOnly`], [`Error::IsDirectory`]
    pub fn write(&mut self, node: NodeId, offset: u64, bytes: &[u8], now: u64) -> Result<(), Error> {
        let space = self.limits.bytes.saturating_sub(self.bytes);
        let end = self.limits.bytes;
        self.change(node, now, |content| {
            if offset.saturating_add(bytes.len() as u64) > end {
                return Err(Error::NoSpace);
            }
            Ok(content.write(offset, bytes, space)?)
        })
    }

    /// Cuts or lengthens a file.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn set_size(&mut self, node: NodeId, size: u64, now: u64) -> Result<(), Error> {
        let end = self.limits.bytes;
        self.change(node, now, |content| {
            if size > end {
                return Err(Error::NoSpace);
            }
            content.set_length(size);
            Ok(())
        })
    }

    /// Sets the modification time.
    ///
    /// # Errors
    /// [`Error::ReadOnly`]
    pub fn set_modified(&mut self, node: NodeId, modified: u64) -> Result<(), Error> {
        self.check_writable(node)?;
        if let Some(node) = self.node_mut(node) {
            node.modified = modified;
        }
        Ok(())
    }

    /// Names and kinds of what is in a directory, in order.
    ///
    /// # Errors
    /// [`Error::NotDirectory`]
    pub fn list(&self, directory: NodeId) -> Result<Vec<(Cow<'static, str>, NodeId)>, Error> {
        match directory.0 {
            Place::Archive(index) => match self.archive.entry(index) {
                Some(Entry::Directory { first, count }) => Ok((first..)
                    .take(count as usize)
                    .map_while(|child| Some((self.archive.name(child)?.into(), NodeId(Place::Archive(child)))))
                    .collect()),
                _ => Err(Error::NotDirectory),
            },
            _ => match self.node(directory).map(|node| &node.body) {
                Some(Body::Directory(entries)) => {
                    Ok(entries.iter().map(|(name, node)| (Cow::Owned((**name).into()), *node)).collect())
                }
                _ => Err(Error::NotDirectory),
            },
        }
    }

    /// Makes an empty directory.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::ReadOnly`], [`Error::NoSpace`] and those of [`Self::look_up`].
    pub fn create_directory(&mut self, base: NodeId, path: &str, now: u64) -> Result<(), Error> {
        if self.look_up(base, path).is_ok() {
            return Err(Error::Exists);
        }
        let parent = self.parent(base, path)?;
        self.make(parent, Body::Directory(BTreeMap::new()), now).map(drop)
    }

    /// Removes a file.
    ///
    /// # Errors
    /// [`Error::IsDirectory`], [`Error::ReadOnly`] and those of [`Self::look_up`].
    pub fn unlink(&mut self, base: NodeId, path: &str, now: u64) -> Result<(), Error> {
        let node = self.look_up(base, path)?;
        if self.stat(node)?.kind == Kind::Directory {
            return Err(Error::IsDirectory);
        }
        let parent = self.parent(base, path)?;
        self.detach(&parent, node, now)
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// [`Error::NotEmpty`], [`Error::NotDirectory`], [`Error::ReadOnly`], [`Error::Busy`] and those
    /// of [`Self::look_up`].
    pub fn remove_directory(&mut self, base: NodeId, path: &str, now: u64) -> Result<(), Error> {
        let node = self.look_up(base, path)?;
        if node == ROOT {
            return Err(Error::Busy);
        }
        if self.stat(node)?.kind != Kind::Directory {
            return Err(Error::NotDirectory);
        }
        let parent = self.parent(base, path)?;
        self.check_writable(parent.directory)?;
        if matches!(self.node(node).map(|node| &node.body), Some(Body::Directory(entries)) if !entries.is_empty()) {
            return Err(Error::NotEmpty);
        }
        self.detach(&parent, node, now)
    }

    /// Moves a file or directory, over what is there already if that is a file or an empty
    /// directory.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::Invalid`] (a directory into itself), [`Error::NotEmpty`],
    /// [`Error::IsDirectory`], [`Error::NotDirectory`] and those of [`Self::look_up`].
    pub fn rename(&mut self, from: (NodeId, &str), to: (NodeId, &str), now: u64) -> Result<(), Error> {
        let node = self.look_up(from.0, from.1)?;
        let source = self.parent(from.0, from.1)?;
        let target = self.parent(to.0, to.1)?;
        self.check_writable(source.directory)?;
        self.check_writable(target.directory)?;
        if self.holds(node, target.directory) {
            return Err(Error::Invalid);
        }
        match self.look_up(to.0, to.1) {
            Ok(there) if there == node => return Ok(()),
            Ok(there) => self.give_way(&target, there, node, now)?,
            Err(Error::NoEntry) => {}
            Err(error) => return Err(error),
        }
        if let Some(Body::Directory(entries)) = self.body_mut(source.directory) {
            entries.remove(source.name);
        }
        self.link(target.directory, target.name, node);
        for directory in [source.directory, target.directory] {
            if let Some(directory) = self.node_mut(directory) {
                directory.modified = now;
            }
        }
        Ok(())
    }

    /// Places a file for the component to read, below a folder such as `/input`, making the
    /// directories on its path. What is placed does not count against the limits. A file that was placed
    /// there before is replaced.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a path that is empty, absolute, or has `.` or `..` in it,
    /// [`Error::Exists`] for a directory, and those of [`Self::look_up`].
    pub fn place(&mut self, folder: &str, path: &str, bytes: Vec<u8>, now: u64) -> Result<(), Error> {
        let mut directory = self.look_up(ROOT, folder)?;
        let mut names = path.split('/').peekable();
        while let Some(name) = names.next() {
            if matches!(name, "" | "." | "..") || name.contains('\0') {
                return Err(Error::Invalid);
            }
            if name.len() > NAME {
                return Err(Error::NameTooLong);
            }
            let there = self.child(directory, name);
            if names.peek().is_none() {
                if let Ok(node) = there {
                    // One that was there when the state was captured.
                    let Some(Node { body: body @ Body::Placed(_), modified, .. }) = self.node_mut(node) else {
                        return Err(Error::Exists);
                    };
                    *body = Body::Placed(bytes);
                    *modified = now;
                    return Ok(());
                }
                let file = self.insert(Body::Placed(bytes), false, now);
                self.link(directory, name, file);
                return Ok(());
            }
            directory = match there {
                Ok(node) => node,
                Err(Error::NoEntry) => {
                    let folder = self.insert(Body::Directory(BTreeMap::new()), false, now);
                    self.link(directory, name, folder);
                    folder
                }
                Err(error) => return Err(error),
            };
        }
        Err(Error::Invalid)
    }

    /// Every file below a folder such as `/output`, in the order of their paths.
    pub fn left(&self, folder: &str) -> Vec<Left> {
        let mut found = Vec::new();
        let mut pending: Vec<(Box<str>, NodeId)> = Vec::new();
        if let Ok(node) = self.look_up(ROOT, folder) {
            pending.push(("".into(), node));
        }
        while let Some((path, directory)) = pending.pop() {
            for (name, node) in self.list(directory).unwrap_or_default() {
                let path: Box<str> =
                    if path.is_empty() { (*name).into() } else { alloc::format!("{path}/{name}").into() };
                match self.stat(node) {
                    Ok(Stat { kind: Kind::File, size, .. }) => found.push(Left { path, size, node }),
                    Ok(Stat { kind: Kind::Directory, .. }) => pending.push((path, node)),
                    _ => {}
                }
            }
        }
        found.sort_by(|one, other| one.path.cmp(&other.path));
        found
    }

    fn node(&self, node: NodeId) -> Option<&Node> {
        let Place::Memory(index) = node.0 else {
            return None;
        };
        self.nodes.get(index as usize)?.as_ref()
    }

    fn node_mut(&mut self, node: NodeId) -> Option<&mut Node> {
        let Place::Memory(index) = node.0 else {
            return None;
        };
        self.nodes.get_mut(index as usize)?.as_mut()
    }

    fn body_mut(&mut self, node: NodeId) -> Option<&mut Body> {
        self.node_mut(node).map(|node| &mut node.body)
    }

    fn insert(&mut self, body: Body, writable: bool, modified: u64) -> NodeId {
        let node = Some(Node { body, writable, modified, open: 0, linked: false });
        let index = match self.free.pop() {
            Some(index) => {
                self.nodes[index as usize] = node;
                index
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
        };
        NodeId(Place::Memory(index))
    }

    fn link(&mut self, directory: NodeId, name: &str, node: NodeId) {
        if let Some(Body::Directory(entries)) = self.body_mut(directory) {
            entries.insert(name.into(), node);
        }
        if let Some(node) = self.node_mut(node) {
            node.linked = true;
        }
    }

    fn child(&self, directory: NodeId, name: &str) -> Result<NodeId, Error> {
        match directory.0 {
            Place::Null => Err(Error::NotDirectory),
            Place::Archive(index) => match self.archive.entry(index) {
                Some(Entry::Directory { .. }) => {
                    self.archive.child(index, name).map(|child| NodeId(Place::Archive(child))).ok_or(Error::NoEntry)
                }
                _ => Err(Error::NotDirectory),
            },
            Place::Memory(_) => match self.node(directory).map(|node| &node.body) {
                Some(Body::Directory(entries)) => entries.get(name).copied().ok_or(Error::NoEntry),
                _ => Err(Error::NotDirectory),
            },
        }
    }

    /// Follows a path from the end of `trail`, which `..` goes back along.
    fn walk(&self, trail: &mut Vec<NodeId>, path: &str) -> Result<NodeId, Error> {
        if path.len() > PATH {
            return Err(Error::NameTooLong);
        }
        if path.is_empty() {
            return Err(Error::NoEntry);
        }
        for name in path.split('/') {
            let Some(&here) = trail.last() else {
                return Err(Error::NotPermitted);
            };
            match name {
                "" | "." => self.check_directory(here)?,
                ".." => {
                    self.check_directory(here)?;
                    trail.pop();
                    if trail.is_empty() {
                        // The parent of the root is the root.
                        if here != ROOT {
                            return Err(Error::NotPermitted);
                        }
                        trail.push(ROOT);
                    }
                }
                _ if name.len() > NAME => return Err(Error::NameTooLong),
                _ if name.contains('\0') => return Err(Error::Invalid),
                _ => trail.push(self.child(here, name)?),
            }
        }
        trail.last().copied().ok_or(Error::NotPermitted)
    }

    fn parent<'a>(&self, base: NodeId, path: &'a str) -> Result<Parent<'a>, Error> {
        let trimmed = path.trim_end_matches('/');
        let (directory, name) = trimmed.rsplit_once('/').unwrap_or((".", trimmed));
        match name {
            "" | ".." => return Err(Error::Busy),
            "." => return Err(Error::Invalid),
            _ if name.len() > NAME => return Err(Error::NameTooLong),
            _ if name.contains('\0') => return Err(Error::Invalid),
            _ => {}
        }
        let directory = self.look_up(base, if directory.is_empty() { "/" } else { directory })?;
        self.check_directory(directory)?;
        Ok(Parent { directory, name })
    }

    fn check_directory(&self, node: NodeId) -> Result<(), Error> {
        if self.stat(node)?.kind == Kind::Directory { Ok(()) } else { Err(Error::NotDirectory) }
    }

    fn check_writable(&self, node: NodeId) -> Result<(), Error> {
        match node.0 {
            Place::Null => Ok(()),
            Place::Archive(_) => Err(Error::ReadOnly),
            Place::Memory(_) => match self.node(node) {
                Some(node) if node.writable => Ok(()),
                Some(_) => Err(Error::ReadOnly),
                None => Err(Error::NoEntry),
            },
        }
    }

    fn make(&mut self, parent: Parent<'_>, body: Body, now: u64) -> Result<NodeId, Error> {
        self.check_writable(parent.directory)?;
        if !self.node(parent.directory).is_some_and(|directory| directory.linked) {
            return Err(Error::NoEntry);
        }
        if self.files >= self.limits.files || self.bytes.saturating_add(ENTRY) > self.limits.bytes {
            return Err(Error::NoSpace);
        }
        self.files += 1;
        self.bytes += ENTRY;
        let node = self.insert(body, true, now);
        self.link(parent.directory, parent.name, node);
        if let Some(directory) = self.node_mut(parent.directory) {
            directory.modified = now;
        }
        Ok(node)
    }

    fn change(
        &mut self,
        node: NodeId,
        now: u64,
        change: impl FnOnce(&mut Content) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if node.0 == Place::Null {
            return Ok(());
        }
        self.check_writable(node)?;
        let found = self.node_mut(node).ok_or(Error::NoEntry)?;
        let Body::File(content) = &mut found.body else {
            return Err(Error::IsDirectory);
        };
        let before = content.held();
        let outcome = change(content);
        let after = content.held();
        found.modified = now;
        self.bytes = self.bytes.saturating_sub(before).saturating_add(after);
        outcome
    }

    fn detach(&mut self, parent: &Parent<'_>, node: NodeId, now: u64) -> Result<(), Error> {
        self.check_writable(parent.directory)?;
        if let Some(directory) = self.node_mut(parent.directory) {
            directory.modified = now;
            if let Body::Directory(entries) = &mut directory.body {
                entries.remove(parent.name);
            }
        }
        if let Some(node) = self.node_mut(node) {
            node.linked = false;
        }
        self.collect(node);
        Ok(())
    }

    /// Removes what a rename is going to replace.
    fn give_way(&mut self, target: &Parent<'_>, there: NodeId, node: NodeId, now: u64) -> Result<(), Error> {
        let directory = self.stat(there)?.kind == Kind::Directory;
        match (self.stat(node)?.kind == Kind::Directory, directory) {
            (true, false) => return Err(Error::NotDirectory),
            (false, true) => return Err(Error::IsDirectory),
            (true, true) if !self.list(there)?.is_empty() => return Err(Error::NotEmpty),
            _ => {}
        }
        self.detach(target, there, now)
    }

    /// Whether `directory` is `node` or somewhere below it.
    fn holds(&self, node: NodeId, directory: NodeId) -> bool {
        let mut pending = vec![node];
        while let Some(next) = pending.pop() {
            if next == directory {
                return true;
            }
            if let Some(Node { body: Body::Directory(entries), .. }) = self.node(next) {
                pending.extend(entries.values().copied());
            }
        }
        false
    }

    /// Frees a node that nothing names or holds.
    fn collect(&mut self, node: NodeId) {
        let Some(found) = self.node(node) else { return };
        if found.linked || found.open > 0 {
            return;
        }
        let held = match &found.body {
            Body::File(content) => content.held(),
            _ => 0,
        };
        if let Place::Memory(index) = node.0 {
            self.nodes[index as usize] = None;
            self.free.push(index);
            self.files = self.files.saturating_sub(1);
            self.bytes = self.bytes.saturating_sub(held + ENTRY);
        }
    }
}

fn part(bytes: &[u8], offset: u64, length: usize) -> &[u8] {
    let start = offset.min(bytes.len() as u64) as usize;
    &bytes[start..][..length.min(bytes.len() - start)]
}

#[cfg(test)]
mod tests;
