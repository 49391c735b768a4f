"""Packs a folder into the archive that the guest's file system reads in place.

The layout is described where it is read, in ``guest/wasi/vfs/src/archive.rs``.
"""

from __future__ import annotations

import struct
from pathlib import Path

MAGIC = b"WCPODFS1"
PAGE = 4096

_NODE = struct.Struct("<IHHII")
_DIRECTORY, _FILE = 0, 1


def pack(folder: Path) -> bytes:
    """The archive of everything below ``folder``, which becomes ``/``.

    Compiled code comes first, one file after the other: a run that imports touches few pages, and
    the sources behind it, which only tracebacks read, none.
    """
    paths = _breadth_first(folder)
    position = {path: index for index, path in enumerate(paths)}
    data = bytearray()
    places = {}
    for path in sorted((path for path in paths if path.is_file()), key=lambda path: (path.suffix != ".pyc", path)):
        places[path] = len(data), path.stat().st_size
        data += path.read_bytes()
    nodes = bytearray()
    names = bytearray()
    for path in paths:
        name = b"" if path == folder else path.name.encode()
        if path.is_dir():
            children = _children(path)
            first = position[children[0]] if children else 0
            nodes += _NODE.pack(len(names), len(name), _DIRECTORY, first, len(children))
        else:
            nodes += _NODE.pack(len(names), len(name), _FILE, *places[path])
        names += name
    header = MAGIC + struct.pack("<II", len(paths), len(names))
    head = header + nodes + names
    return head + bytes(-len(head) % PAGE) + data


def _breadth_first(folder: Path) -> list[Path]:
    paths = [folder]
    for path in paths:
        if path.is_dir():
            paths += _children(path)
    return paths


def _children(folder: Path) -> list[Path]:
    return sorted(folder.iterdir(), key=lambda path: path.name.encode())
