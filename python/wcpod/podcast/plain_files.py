"""Files of a folder that others may have written to: plain names, plain files, no link, nothing that blocks."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

MOST_BYTES = 32 * 1024 * 1024
"""Largest file that is read whole."""


def is_plain_name(name: object) -> bool:
    """Whether `name` is the name of a visible file in the folder itself."""
    return isinstance(name, str) and name != "" and not name.startswith(".") and not {"/", "\0"} & set(name)


@contextlib.contextmanager
def open_folder(path: str | Path, *, within: int | None = None, follow: bool = False) -> Iterator[int]:
    """A descriptor of a folder: it stays the same folder, wherever its path leads meanwhile.

    Raises:
        OSError: if it is none, or a link and `follow` is not set.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    handle = os.open(path, flags, dir_fd=within)
    try:
        yield handle
    finally:
        os.close(handle)


def names_in(folder: int) -> list[str]:
    """The names in a folder that is open."""
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]


def is_plain_file(name: str, *, within: int) -> bool:
    """Whether there is a plain file of that name.

    Raises:
        OSError: if there is something else of that name.
    """
    try:
        mode = os.stat(name, dir_fd=within, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, f"{name} is no plain file")
    return True


def read_plain_file(path: str | Path, *, within: int | None = None, most: int = MOST_BYTES) -> bytes:
    """The content of a file of at most `most` bytes.

    Raises:
        OSError: if it cannot be read, is no plain file, or larger.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=within)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "no plain file")
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return content


def write_new_file(name: str, content: bytes, *, within: int) -> None:
    """Write a file that does not exist yet, and wait until it is on disk.

    Raises:
        OSError: if that fails.
    """
    handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=within)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(handle)
