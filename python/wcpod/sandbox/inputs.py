"""Files that a run is given below /input: text, bytes, or files of the host."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from wcpod.sandbox.options import Input, check_class

MOST_BYTES = 3 << 20
"""Most bytes that a run may be given, its code included. The host core counts them itself."""


def checked_inputs(inputs: Mapping[str, Input] | None) -> list[tuple[str, bytes]]:
    """Names and contents of input files.

    Raises:
        OSError: a file of the host cannot be read.
        TypeError: a name is not text, or a content is neither text, nor bytes, nor a path.
        ValueError: a text is not Unicode, or a file is larger than a run may be given.
    """
    for name in inputs or {}:
        check_class("the name of an input", name, str)
        _utf8(name, f"the name of the input {name!r}")
    return [(name, _content(name, content)) for name, content in (inputs or {}).items()]


def _utf8(text: str, what: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{what} holds half of a surrogate pair, which is not text") from None


def _content(name: str, content: Input) -> bytes:
    if isinstance(content, str):
        return _utf8(content, f"the input {name!r}")
    if isinstance(content, Path):
        return read_file(content, MOST_BYTES)
    if isinstance(content, (bytes, bytearray, memoryview)):
        return bytes(content)
    raise TypeError(f"the input {name!r} must be a str, bytes or a Path, not {type(content).__name__}")


def read_file(path: Path, most: int, *, follow: bool = True) -> bytes:
    """The content of a file of at most `most` bytes; without `follow` of no link.

    Raises:
        OSError: it cannot be read.
        ValueError: it is a device or the like, which might not end, or larger.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    handle = os.open(path, flags)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ValueError(f"{str(path)!r} is no plain file")
        with os.fdopen(handle, "rb", closefd=False) as file:
            content = file.read(most + 1)
    finally:
        os.close(handle)
    if len(content) > most:
        raise ValueError(
            f"with {str(path)!r} the inputs are larger than the {MOST_BYTES} bytes that a run may be given"
        )
    return content
