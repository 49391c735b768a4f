//! Files in folders that others may have written to: no link is followed to write, and no pipe is waited for.
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a plain file to read.
pub(crate) fn read(path: &Path) -> io::Result<File> {
    only_plain(OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?)
}

/// Opens a plain file to append to; makes it unless it is there.
pub(crate) fn append(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let opened = OpenOptions::new().append(true).create(true).custom_flags(flags).open(path);
    only_plain(opened.map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP) => io::Error::other("it is a link"),
        Some(libc::ENXIO) => io::Error::other("it is no plain file"),
        _ => error,
    })?)
}

/// Opens a plain file to write; makes it, or empties it.
pub(crate) fn write(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    only_plain(OpenOptions::new().write(true).create(true).truncate(true).custom_flags(flags).open(path)?)
}

fn only_plain(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no plain file")) }
}
