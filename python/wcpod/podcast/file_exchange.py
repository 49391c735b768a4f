"""Several files of one folder replaced together: all or none, also when the process dies in between.

Everything is written into a scratch folder first. Then a list of what is about to move is put there, then each file
moves. Whoever finds such a scratch folder knows how far its process came, and puts back what was there. A list is
believed only as far as its names are ones that are expected in that folder: somebody else may have written it.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from wcpod.podcast.plain_files import (
    is_plain_file,
    is_plain_name,
    names_in,
    open_folder,
    read_plain_file,
    write_new_file,
)

_SCRATCH = ".writing-"
_MOVING = "moving.json"
_MOVING_BYTES = 64 * 1024
_BEFORE = ".before"


def exchange_files(folder: Path, files: Mapping[str, bytes], *, drop: Sequence[str] = ()) -> None:
    """Put `files` (name → content) into `folder`, in their order, and remove those named in `drop`.

    Raises:
        ValueError: if a name is more than the name of a file.
        OSError: if that fails, or a link, folder or pipe has one of the names; then the folder is as it was.
    """
    if odd := [name for name in (*files, *drop) if not is_plain_name(name)]:
        raise ValueError(f"{odd[0]!r} is not the name of a file")
    with open_folder(folder, follow=True) as home, _scratch(home) as scratch:
        for file, content in files.items():
            write_new_file(file, content, within=scratch)
        for file in (*files, *drop):
            if is_plain_file(file, within=home):
                _keep(file, home, scratch)
        write_new_file(_MOVING, json.dumps([list(files), list(drop)]).encode(), within=scratch)
        try:
            for file in files:
                os.rename(file, file, src_dir_fd=scratch, dst_dir_fd=home)
            for file in drop:
                os.unlink(file, dir_fd=home)
        except BaseException:
            _put_back(home, scratch, files, drop)
            raise
        os.fsync(home)


def clear_dead_exchanges(folder: Path, expected: Callable[[str], bool] = is_plain_name) -> None:
    """Undo what a process that died left half done in `folder`, or end it if all files are in place.

    Only for the holder of the folder's lock. A scratch folder that is not this user's alone, or that names a file that
    is not `expected`, is nobody's of ours and stays.
    """
    with open_folder(folder) as home:
        for name in names_in(home):
            if not name.startswith(_SCRATCH):
                continue
            with contextlib.suppress(OSError), open_folder(name, within=home) as scratch:
                status = os.fstat(scratch)
                if status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) == 0o700:
                    _clear(home, name, scratch, expected)


def _clear(home: int, name: str, scratch: int, expected: Callable[[str], bool]) -> None:
    files, drop = _moving(scratch)
    if not all(is_plain_name(file) and expected(file) for file in (*files, *drop)):
        return
    if any(is_plain_file(file, within=scratch) for file in files):
        _put_back(home, scratch, files, drop)
    else:
        for file in drop:
            _unlink(file, home)
    _remove(home, name, scratch)


@contextlib.contextmanager
def _scratch(home: int) -> Iterator[int]:
    name = f"{_SCRATCH}{secrets.token_hex(8)}"
    os.mkdir(name, 0o700, dir_fd=home)
    with open_folder(name, within=home) as scratch:
        try:
            yield scratch
        finally:
            _remove(home, name, scratch)


def _remove(home: int, name: str, scratch: int) -> None:
    with contextlib.suppress(OSError):
        for file in names_in(scratch):
            os.unlink(file, dir_fd=scratch)
        os.rmdir(name, dir_fd=home)


def _put_back(home: int, scratch: int, files: Mapping[str, bytes] | Sequence[str], drop: Sequence[str]) -> None:
    for file in (*drop, *reversed(list(files))):
        if is_plain_file(file + _BEFORE, within=scratch):
            os.rename(file + _BEFORE, file, src_dir_fd=scratch, dst_dir_fd=home)
        elif not is_plain_file(file, within=scratch):
            _unlink(file, home)


def _unlink(file: str, home: int) -> None:
    if is_plain_file(file, within=home):
        os.unlink(file, dir_fd=home)


def _moving(scratch: int) -> tuple[list[str], list[str]]:
    """The files that move into place, and those that are dropped."""
    try:
        files, drop = json.loads(read_plain_file(_MOVING, within=scratch, most=_MOVING_BYTES))
        return list(files), list(drop)
    except (OSError, ValueError, TypeError):  # it died before anything moved
        return [], []


def _keep(file: str, home: int, scratch: int) -> None:
    try:
        os.link(file, file + _BEFORE, src_dir_fd=home, dst_dir_fd=scratch, follow_symlinks=False)
    except OSError:  # a file system without hard links
        write_new_file(file + _BEFORE, read_plain_file(file, within=home, most=1 << 40), within=scratch)
