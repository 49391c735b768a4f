//! The types of `wasi:filesystem/types`; the names are WASI's.
use alloc::string::String;

use wasmtime::component::{ComponentType, Lift, Lower, flags};

use crate::clocks::Datetime;
use crate::vfs;

flags! {
    DescriptorFlags {
        #[component(name = "read")]
        const READ;
        #[component(name = "write")]
        const WRITE;
        #[component(name = "file-integrity-sync")]
        const FILE_INTEGRITY_SYNC;
        #[component(name = "data-integrity-sync")]
        const DATA_INTEGRITY_SYNC;
        #[component(name = "requested-write-sync")]
        const REQUESTED_WRITE_SYNC;
        #[component(name = "mutate-directory")]
        const MUTATE_DIRECTORY;
    }
}

flags! {
    OpenFlags {
        #[component(name = "create")]
        const CREATE;
        #[component(name = "directory")]
        const DIRECTORY;
        #[component(name = "exclusive")]
        const EXCLUSIVE;
        #[component(name = "truncate")]
        const TRUNCATE;
    }
}

flags! {
    PathFlags {
        #[component(name = "symlink-follow")]
        const SYMLINK_FOLLOW;
    }
}

#[derive(ComponentType, Lift, Lower, Clone, Copy)]
#[component(enum)]
#[repr(u8)]
#[rustfmt::skip]
#[expect(dead_code, reason = "the type has to be whole, few cases of it are made")]
pub(super) enum DescriptorType {
    #[component(name = "unknown")] Unknown,
    #[component(name = "block-device")] BlockDevice,
    #[component(name = "character-device")] CharacterDevice,
    #[component(name = "directory")] Directory,
    #[component(name = "fifo")] Fifo,
    #[component(name = "symbolic-link")] SymbolicLink,
    #[component(name = "regular-file")] RegularFile,
    #[component(name = "socket")] Socket,
}

#[derive(ComponentType, Lift, Lower, Clone, Copy)]
#[component(enum)]
#[repr(u8)]
#[rustfmt::skip]
#[expect(dead_code, reason = "made by the component only")]
pub(super) enum Advice {
    #[component(name = "normal")] Normal,
    #[component(name = "sequential")] Sequential,
    #[component(name = "random")] Random,
    #[component(name = "will-need")] WillNeed,
    #[component(name = "dont-need")] DontNeed,
    #[component(name = "no-reuse")] NoReuse,
}

#[derive(ComponentType, Lift, Lower, Clone, Copy)]
#[component(enum)]
#[repr(u8)]
#[rustfmt::skip]
#[expect(dead_code, reason = "the type has to be whole, some cases of it are returned")]
pub(super) enum ErrorCode {
    #[component(name = "access")] Access,
    #[component(name = "would-block")] WouldBlock,
    #[component(name = "already")] Already,
    #[component(name = "bad-descriptor")] BadDescriptor,
    #[component(name = "busy")] Busy,
    #[component(name = "deadlock")] Deadlock,
    #[component(name = "quota")] Quota,
    #[component(name = "exist")] Exist,
    #[component(name = "file-too-large")] FileTooLarge,
    #[component(name = "illegal-byte-sequence")] IllegalByteSequence,
    #[component(name = "in-progress")] InProgress,
    #[component(name = "interrupted")] Interrupted,
    #[component(name = "invalid")] Invalid,
    #[component(name = "io")] Io,
    #[component(name = "is-directory")] IsDirectory,
    #[component(name = "loop")] Loop,
    #[component(name = "too-many-links")] TooManyLinks,
    #[component(name = "message-size")] MessageSize,
    #[component(name = "name-too-long")] NameTooLong,
    #[component(name = "no-device")] NoDevice,
    #[component(name = "no-entry")] NoEntry,
    #[component(name = "no-lock")] NoLock,
    #[component(name = "insufficient-memory")] InsufficientMemory,
    #[component(name = "insufficient-space")] InsufficientSpace,
    #[component(name = "not-directory")] NotDirectory,
    #[component(name = "not-empty")] NotEmpty,
    #[component(name = "not-recoverable")] NotRecoverable,
    #[component(name = "unsupported")] Unsupported,
    #[component(name = "no-tty")] NoTty,
    #[component(name = "no-such-device")] NoSuchDevice,
    #[component(name = "overflow")] Overflow,
    #[component(name = "not-permitted")] NotPermitted,
    #[component(name = "pipe")] Pipe,
    #[component(name = "read-only")] ReadOnly,
    #[component(name = "invalid-seek")] InvalidSeek,
    #[component(name = "text-file-busy")] TextFileBusy,
    #[component(name = "cross-device")] CrossDevice,
}

impl From<vfs::Error> for ErrorCode {
    fn from(error: vfs::Error) -> Self {
        match error {
            vfs::Error::BadDescriptor => Self::BadDescriptor,
            vfs::Error::Busy => Self::Busy,
            vfs::Error::Exists => Self::Exist,
            vfs::Error::Invalid => Self::Invalid,
            vfs::Error::IsDirectory => Self::IsDirectory,
            vfs::Error::NameTooLong => Self::NameTooLong,
            vfs::Error::NoEntry => Self::NoEntry,
            vfs::Error::NoSpace => Self::InsufficientSpace,
            vfs::Error::NotDirectory => Self::NotDirectory,
            vfs::Error::NotEmpty => Self::NotEmpty,
            vfs::Error::NotPermitted => Self::NotPermitted,
            vfs::Error::ReadOnly => Self::ReadOnly,
            vfs::Error::TooManyOpen => Self::InsufficientMemory,
            vfs::Error::Unsupported => Self::Unsupported,
        }
    }
}

#[derive(ComponentType, Lift, Lower, Clone, Copy)]
#[component(record)]
pub(super) struct DescriptorStat {
    #[component(name = "type")]
    pub(super) kind: DescriptorType,
    #[component(name = "link-count")]
    pub(super) link_count: u64,
    pub(super) size: u64,
    #[component(name = "data-access-timestamp")]
    pub(super) data_access_timestamp: Option<Datetime>,
    #[component(name = "data-modification-timestamp")]
    pub(super) data_modification_timestamp: Option<Datetime>,
    #[component(name = "status-change-timestamp")]
    pub(super) status_change_timestamp: Option<Datetime>,
}

#[derive(ComponentType, Lift, Lower, Clone, Copy)]
#[component(variant)]
pub(super) enum NewTimestamp {
    #[component(name = "no-change")]
    NoChange,
    #[component(name = "now")]
    Now,
    #[component(name = "timestamp")]
    Timestamp(Datetime),
}

#[derive(ComponentType, Lower)]
#[component(record)]
pub(super) struct DirectoryEntry {
    #[component(name = "type")]
    pub(super) kind: DescriptorType,
    pub(super) name: String,
}

/// What tells one file from another; Python's inode number is made of it.
#[derive(ComponentType, Lift, Lower, Clone, Copy)]
#[component(record)]
pub(super) struct MetadataHash {
    lower: u64,
    upper: u64,
}

impl From<vfs::Stat> for MetadataHash {
    fn from(stat: vfs::Stat) -> Self {
        Self { lower: stat.inode, upper: 0 }
    }
}
