//! `wasi:filesystem`: one preopened directory, `/` of the [file system in memory](crate::vfs).
mod types;

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use wasmtime::component::{LinkerInstance, Resource, WasmList, WasmStr};

use crate::clocks::Datetime;
use crate::streams::{Failure, Input, Output, READ};
use crate::vfs::{self, Kind, NodeId, ROOT};
use crate::{Context, Host, Wasi};
use types::{
    Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, ErrorCode, MetadataHash, NewTimestamp,
    OpenFlags, PathFlags,
};

/// Most bytes of one direct write, which are copied once on the way.
const WRITE: usize = 256 << 10;

/// An open file or directory.
pub(crate) struct Descriptor {
    node: NodeId,
    flags: DescriptorFlags,
}

/// A directory being listed: what was in it when that began.
pub(crate) struct Listing(vec::IntoIter<(Cow<'static, str>, NodeId)>);

type Handle = Resource<Descriptor>;
type Outcome<T> = wasmtime::Result<(Result<T, ErrorCode>,)>;

/// Turns the file system's errors into values for the component, and lets traps through.
fn outcome<T>(result: Result<T, vfs::Error>) -> Outcome<T> {
    Ok((result.map_err(ErrorCode::from),))
}

/// The string at the component's pointer, copied: the file system cannot be borrowed beside it.
fn text<H: Host>(cx: &Context<H>, string: &WasmStr) -> wasmtime::Result<String> {
    let mut path = string.to_str(cx)?;
    // One byte over the longest path is as good as all of them.
    if path.len() > PATH {
        path = Cow::Borrowed(TOO_LONG);
    }
    Ok(path.into_owned())
}

const PATH: usize = 8192;
/// A name that is too long, in place of any path longer than [`PATH`].
static TOO_LONG: &str = match core::str::from_utf8(&[b'x'; 300]) {
    Ok(text) => text,
    Err(_) => "",
};

impl<H: Host> Wasi<H> {
    fn node(&self, handle: &Handle) -> wasmtime::Result<NodeId> {
        Ok(self.table.get(handle)?.node)
    }

    /// The node, if the descriptor was opened for writing.
    fn node_to_write(&self, handle: &Handle) -> wasmtime::Result<Result<NodeId, vfs::Error>> {
        let descriptor = self.table.get(handle)?;
        Ok(if descriptor.flags.contains(DescriptorFlags::WRITE) {
            Ok(descriptor.node)
        } else {
            Err(vfs::Error::BadDescriptor)
        })
    }

    fn open_at(&mut self, base: &Handle, path: &str, how: OpenFlags, flags: DescriptorFlags) -> Outcome<Handle> {
        let base = self.node(base)?;
        let open = vfs::Open {
            create: how.contains(OpenFlags::CREATE),
            directory: how.contains(OpenFlags::DIRECTORY),
            exclusive: how.contains(OpenFlags::EXCLUSIVE),
            truncate: how.contains(OpenFlags::TRUNCATE),
            write: flags.contains(DescriptorFlags::WRITE),
        };
        let now = self.host.wall_clock_ns();
        match self.files.open(base, path, open, now) {
            Ok(node) => Ok((Ok(self.table.push(Descriptor { node, flags })?),)),
            Err(error) => outcome(Err(error)),
        }
    }

    pub(crate) fn drop_descriptor(&mut self, handle: Handle) -> wasmtime::Result<()> {
        let descriptor = self.table.delete(handle)?;
        self.files.close(descriptor.node);
        Ok(())
    }

    fn input(&mut self, handle: &Handle, offset: u64) -> Outcome<Resource<Input>> {
        let node = self.node(handle)?;
        match self.files.hold(node) {
            Ok(()) => Ok((Ok(self.table.push(Input::File { node, offset })?),)),
            Err(error) => outcome(Err(error)),
        }
    }

    fn output(&mut self, handle: &Handle, offset: Option<u64>) -> Outcome<Resource<Output>> {
        let held = match self.node_to_write(handle)? {
            Ok(node) => self.files.hold(node).map(|()| node),
            Err(error) => Err(error),
        };
        match held {
            Ok(node) => Ok((Ok(self.table.push(Output::File { node, offset })?),)),
            Err(error) => outcome(Err(error)),
        }
    }

    fn stat(&self, node: NodeId) -> Outcome<DescriptorStat> {
        outcome(self.files.stat(node).map(|stat| {
            let time = Some(Datetime::from_ns(stat.modified));
            DescriptorStat {
                kind: stat.kind.into(),
                link_count: 1,
                size: stat.size,
                data_access_timestamp: time,
                data_modification_timestamp: time,
                status_change_timestamp: time,
            }
        }))
    }

    fn set_times(&mut self, node: NodeId, modified: NewTimestamp) -> Outcome<()> {
        let modified = match modified {
            NewTimestamp::NoChange => return Ok((Ok(()),)),
            NewTimestamp::Now => self.host.wall_clock_ns(),
            NewTimestamp::Timestamp(time) => time.to_ns(),
        };
        outcome(self.files.set_modified(node, modified))
    }
}

impl From<Kind> for DescriptorType {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Device => Self::CharacterDevice,
            Kind::Directory => Self::Directory,
            Kind::File => Self::RegularFile,
        }
    }
}

pub(crate) fn define<H: Host>(instance: &mut LinkerInstance<'_, Wasi<H>>, name: &str) -> wasmtime::Result<()> {
    match name {
        "preopens" => instance.func_wrap("get-directories", |mut cx: Context<H>, (): ()| {
            let root = Descriptor { node: ROOT, flags: DescriptorFlags::READ | DescriptorFlags::MUTATE_DIRECTORY };
            let handle = cx.data_mut().table.push(root)?;
            Ok((vec![(handle, "/")],))
        }),
        "types" => {
            define_listing(instance)?;
            define_descriptor(instance)?;
            define_streams(instance)?;
            define_paths(instance)?;
            define_changes(instance)
        }
        _ => Ok(()),
    }
}

fn define_listing<H: Host>(instance: &mut LinkerInstance<'_, Wasi<H>>) -> wasmtime::Result<()> {
    instance.func_wrap(
        "[method]directory-entry-stream.read-directory-entry",
        |mut cx: Context<H>, (listing,): (Resource<Listing>,)| {
            let wasi = cx.data_mut();
            let next = wasi.table.get_mut(&listing)?.0.next();
            let entry = next.and_then(|(name, node)| {
                let kind = wasi.files.stat(node).ok()?.kind.into();
                Some(DirectoryEntry { kind, name: name.into_owned() })
            });
            Ok((Ok::<_, ErrorCode>(entry),))
        },
    )?;
    instance.func_wrap("filesystem-error-code", |cx: Context<H>, (error,): (Resource<Failure>,)| {
        Ok((Some(ErrorCode::from(cx.data().table.get(&error)?.0)),))
    })
}

fn define_descriptor<H: Host>(instance: &mut LinkerInstance<'_, Wasi<H>>) -> wasmtime::Result<()> {
    instance.func_wrap("[method]descriptor.get-flags", |cx: Context<H>, (handle,): (Handle,)| {
        Ok((Ok::<_, ErrorCode>(cx.data().table.get(&handle)?.flags),))
    })?;
    instance.func_wrap("[method]descriptor.get-type", |cx: Context<H>, (handle,): (Handle,)| {
        let wasi = cx.data();
        outcome(wasi.files.stat(wasi.node(&handle)?).map(|stat| DescriptorType::from(stat.kind)))
    })?;
    instance.func_wrap("[method]descriptor.stat", |cx: Context<H>, (handle,): (Handle,)| {
        let wasi = cx.data();
        wasi.stat(wasi.node(&handle)?)
    })?;
    instance.func_wrap("[method]descriptor.is-same-object", |cx: Context<H>, (one, other): (Handle, Handle)| {
        Ok((cx.data().node(&one)? == cx.data().node(&other)?,))
    })?;
    instance.func_wrap("[method]descriptor.metadata-hash", |cx: Context<H>, (handle,): (Handle,)| {
        let wasi = cx.data();
        outcome(wasi.files.stat(wasi.node(&handle)?).map(MetadataHash::from))
    })?;
    instance.func_wrap("[method]descriptor.read-directory", |mut cx: Context<H>, (handle,): (Handle,)| {
        let wasi = cx.data_mut();
        match wasi.files.list(wasi.node(&handle)?) {
            Ok(entries) => Ok((Ok(wasi.table.push(Listing(entries.into_iter()))?),)),
            Err(error) => outcome(Err(error)),
        }
    })?;
    for method in ["sync", "sync-data"] {
        instance.func_wrap(&alloc::format!("[method]descriptor.{method}"), |_: Context<H>, _: (Handle,)| {
            Ok((Ok::<_, ErrorCode>(()),))
        })?;
    }
    instance.func_wrap("[method]descriptor.advise", |_: Context<H>, _: (Handle, u64, u64, Advice)| {
        Ok((Ok::<_, ErrorCode>(()),))
    })
}

fn define_streams<H: Host>(instance: &mut LinkerInstance<'_, Wasi<H>>) -> wasmtime::Result<()> {
    instance
        .func_wrap("[method]descriptor.read-via-stream", |mut cx: Context<H>, (handle, offset): (Handle, u64)| {
            cx.data_mut().input(&handle, offset)
        })?;
    instance
        .func_wrap("[method]descriptor.write-via-stream", |mut cx: Context<H>, (handle, offset): (Handle, u64)| {
            cx.data_mut().output(&handle, Some(offset))
        })?;
    instance.func_wrap("[method]descriptor.append-via-stream", |mut cx: Context<H>, (handle,): (Handle,)| {
        cx.data_mut().output(&handle, None)
    })?;
    instance.func_wrap("[method]descriptor.read", |cx: Context<H>, (handle, length, offset): (Handle, u64, u64)| {
        let wasi = cx.data();
        let read = wasi.files.read(wasi.node(&handle)?, offset, length.min(READ) as usize);
        outcome(read.map(|bytes| {
            let end = bytes.is_empty() && length > 0;
            (bytes, end)
        }))
    })?;
    instance.func_wrap(
        "[method]descriptor.write",
        |mut cx: Context<H>, (handle, bytes, offset): (Handle, WasmList<u8>, u64)| {
            let node = match cx.data().node_to_write(&handle)? {
                Ok(node) => node,
                Err(error) => return outcome(Err(error)),
            };
            let bytes: Vec<u8> = bytes.as_le_slice(&cx).iter().take(WRITE).copied().collect();
            let wasi = cx.data_mut();
            let now = wasi.host.wall_clock_ns();
            outcome(wasi.files.write(node, offset, &bytes, now).map(|()| bytes.len() as u64))
        },
    )
}

fn define_paths<H: Host>(instance: &mut LinkerInstance<'_, Wasi<H>>) -> wasmtime::Result<()> {
    instance.func_wrap(
        "[method]descriptor.open-at",
        |mut cx: Context<H>, (base, _, path, how, flags): (Handle, PathFlags, WasmStr, OpenFlags, DescriptorFlags)| {
            let path = text(&cx, &path)?;
            cx.data_mut().open_at(&base, &path, how, flags)
        },
    )?;
    instance.func_wrap(
        "[method]descriptor.stat-at",
        |cx: Context<H>, (base, _, path): (Handle, PathFlags, WasmStr)| {
            let path = text(&cx, &path)?;
            let wasi = cx.data();
            match wasi.files.look_up(wasi.node(&base)?, &path) {
                Ok(node) => wasi.stat(node),
                Err(error) => outcome(Err(error)),
            }
        },
    )?;
    instance.func_wrap(
        "[method]descriptor.metadata-hash-at",
        |cx: Context<H>, (base, _, path): (Handle, PathFlags, WasmStr)| {
            let path = text(&cx, &path)?;
            let wasi = cx.data();
            let found = wasi.files.look_up(wasi.node(&base)?, &path).and_then(|node| wasi.files.stat(node));
            outcome(found.map(MetadataHash::from))
        },
    )?;
    instance.func_wrap("[method]descriptor.readlink-at", |cx: Context<H>, (base, path): (Handle, WasmStr)| {
        let path = text(&cx, &path)?;
        let wasi = cx.data();
        let found = wasi.files.look_up(wasi.node(&base)?, &path);
        outcome(found.and(Err::<String, _>(vfs::Error::Invalid)))
    })
}

fn define_changes<H: Host>(instance: &mut LinkerInstance<'_, Wasi<H>>) -> wasmtime::Result<()> {
    instance.func_wrap("[method]descriptor.set-size", |mut cx: Context<H>, (handle, size): (Handle, u64)| {
        let wasi = cx.data_mut();
        let now = wasi.host.wall_clock_ns();
        let node = wasi.node_to_write(&handle)?;
        outcome(node.and_then(|node| wasi.files.set_size(node, size, now)))
    })?;
    instance.func_wrap(
        "[method]descriptor.set-times",
        |mut cx: Context<H>, (handle, _, modified): (Handle, NewTimestamp, NewTimestamp)| {
            let wasi = cx.data_mut();
            wasi.set_times(wasi.node(&handle)?, modified)
        },
    )?;
    instance.func_wrap(
        "[method]descriptor.set-times-at",
        |mut cx: Context<H>, (base, _, path, _, modified): (Handle, PathFlags, WasmStr, NewTimestamp, NewTimestamp)| {
            let path = text(&cx, &path)?;
            let wasi = cx.data_mut();
            match wasi.files.look_up(wasi.node(&base)?, &path) {
                Ok(node) => wasi.set_times(node, modified),
                Err(error) => outcome(Err(error)),
            }
        },
    )?;
    type Change = fn(&mut vfs::Vfs, NodeId, &str, u64) -> Result<(), vfs::Error>;
    let changes: [(&str, Change); 3] = [
        ("create-directory-at", vfs::Vfs::create_directory),
        ("remove-directory-at", vfs::Vfs::remove_directory),
        ("unlink-file-at", vfs::Vfs::unlink),
    ];
    for (method, change) in changes {
        instance.func_wrap(
            &alloc::format!("[method]descriptor.{method}"),
            move |mut cx: Context<H>, (base, path): (Handle, WasmStr)| {
                let path = text(&cx, &path)?;
                let wasi = cx.data_mut();
                let now = wasi.host.wall_clock_ns();
                let base = wasi.node(&base)?;
                outcome(change(&mut wasi.files, base, &path, now))
            },
        )?;
    }
    instance.func_wrap(
        "[method]descriptor.rename-at",
        |mut cx: Context<H>, (base, from, new_base, to): (Handle, WasmStr, Handle, WasmStr)| {
            let (from, to) = (text(&cx, &from)?, text(&cx, &to)?);
            let wasi = cx.data_mut();
            let now = wasi.host.wall_clock_ns();
            let (base, new_base) = (wasi.node(&base)?, wasi.node(&new_base)?);
            outcome(wasi.files.rename((base, &from), (new_base, &to), now))
        },
    )?;
    instance.func_wrap(
        "[method]descriptor.link-at",
        |_: Context<H>, _: (Handle, PathFlags, WasmStr, Handle, WasmStr)| {
            outcome(Err::<(), _>(vfs::Error::Unsupported))
        },
    )?;
    instance.func_wrap("[method]descriptor.symlink-at", |_: Context<H>, _: (Handle, WasmStr, WasmStr)| {
        outcome(Err::<(), _>(vfs::Error::Unsupported))
    })
}
