"""Several files of one folder replaced together: all or none, also when the process dies in between.

Everything is written into a scratch folder first. Then a list of what is about to move is put there, then each file
moves. Whoever finds such a scratch folder knows how far its process came, and puts back what was there.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

_SCRATCH = ".writing-"
_MOVING = "moving.json"
_BEFORE = ".before"


def exchange_files(folder: Path, files: Mapping[str, bytes], *, drop: Sequence[str] = ()) -> None:
    """Put `files` (name → content) into `folder`, in their order, and remove those named in `drop`.

    Raises:
        OSError: if that fails; then the folder is as it was.
    """
    with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=folder) as name:
        scratch = Path(name)
        for file, content in files.items():
            write_file(scratch / file, content)
        for file in (*files, *drop):
            if (folder / file).exists():
                _keep(folder / file, scratch / (file + _BEFORE))
        write_file(scratch / _MOVING, json.dumps([list(files), list(drop)]).encode())
        try:
            for file in files:
                (scratch / file).replace(folder / file)
            for file in drop:
                (folder / file).unlink()
        except BaseException:
            _put_back(folder, scratch)
            raise
    _sync_folder(folder)


def clear_dead_exchanges(folder: Path) -> None:
    """Undo what a process that died left half done in `folder`, or end it if all files are in place.

    Only for the holder of the folder's lock.
    """
    for scratch in folder.glob(f"{_SCRATCH}*"):
        files, drop = _moving(scratch)
        if any((scratch / file).exists() for file in files):
            _put_back(folder, scratch)
        else:
            for file in drop:
                (folder / file).unlink(missing_ok=True)
        shutil.rmtree(scratch)


def write_file(path: Path, content: bytes) -> Path:
    """Write a file and wait until it is on disk."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return path


def _put_back(folder: Path, scratch: Path) -> None:
    files, drop = _moving(scratch)
    for file in (*drop, *reversed(files)):
        before = scratch / (file + _BEFORE)
        if before.exists():
            before.replace(folder / file)
        elif not (scratch / file).exists():
            (folder / file).unlink(missing_ok=True)


def _moving(scratch: Path) -> tuple[list[str], list[str]]:
    """The files that move into place, and those that are dropped."""
    try:
        files, drop = json.loads((scratch / _MOVING).read_bytes())
    except (OSError, ValueError):  # it died before anything moved
        return [], []
    return files, drop


def _keep(file: Path, copy: Path) -> None:
    try:
        os.link(file, copy)
    except OSError:  # a file system without hard links
        shutil.copy2(file, copy)


def _sync_folder(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
