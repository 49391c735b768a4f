"""Standard streams that decide nothing: closed, full, of another encoding or read by nobody, a command goes on.

What cannot be written is lost, and only that: the files that a command makes and its exit code stay the same.
"""

from __future__ import annotations

import io
import os
import select
import sys
from typing import TYPE_CHECKING, TextIO, cast

import click

if TYPE_CHECKING:
    from typing_extensions import Buffer


class _LossyFile(io.FileIO):
    """A file that takes everything, and drops what cannot be written."""

    def write(self, data: Buffer) -> int:
        """Write `data`. Never fails, and waits where the file would block."""
        try:
            # `FileIO.write` returns None, against its type, when a non-blocking file is full.
            while (written := cast("int | None", super().write(data))) is None:
                select.select([], [self.fileno()], [])
        except OSError:
            return memoryview(data).nbytes
        return written


def make_standard_streams_lossy() -> None:
    """Puts streams in place of `sys.stdin`, `sys.stdout` and `sys.stderr` that no write or closed descriptor breaks."""
    _open_missing_descriptors()
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = _lossy(sys.stdout, 1)
    sys.stderr = _lossy(sys.stderr, 2)


def write_through(stream: TextIO, text: str) -> None:
    """Write `text` as UTF-8, whatever the stream's encoding is."""
    click.echo(text.encode("utf-8", "backslashreplace"), file=stream, nl=False)


def _open_missing_descriptors() -> None:
    """Opens the null device where 0, 1 or 2 is closed, so that no file of ours gets that number."""
    null = os.open(os.devnull, os.O_RDWR)
    while null <= 2:
        null = os.dup(null)
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.dup2(null, descriptor, inheritable=True)
    os.close(null)


def _lossy(stream: TextIO | None, descriptor: int) -> TextIO:
    file = _LossyFile(descriptor, "wb", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(file),
        encoding=getattr(stream, "encoding", None) or "utf-8",
        errors="backslashreplace",
        line_buffering=file.isatty() or descriptor == 2,
        write_through=descriptor == 2,
    )
