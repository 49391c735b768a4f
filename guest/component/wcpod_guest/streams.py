"""Standard streams whose text leaves the interpreter as it is written."""

import io
import posix
import sys
from collections.abc import Buffer
from typing import Any

_write = posix.write


class _Counted(io.FileIO):
    """A file that knows how often it was written to."""

    writes = 0

    def write(self, data: Buffer) -> int:
        self.writes += 1
        return io.FileIO.write(self, data)


class Streams:
    """Opens the standard streams of a run."""

    def __init__(self) -> None:
        self._open_all()

    def _open_all(self) -> None:
        self._stdin = self.open(0, "r", "<stdin>")
        self._stdout = self.open(1, "w", "<stdout>")
        self._stderr = self.open(2, "w", "<stderr>")

    def begin(self) -> None:
        """Gives the run its streams, new ones if another has closed any."""
        if self._stdin.closed or self._stdout.closed or self._stderr.closed:
            self._open_all()
        # The second names are not for programs to change, but this is the interpreter's own part.
        sys.stdin = sys.__stdin__ = self._stdin  # type: ignore[misc]
        sys.stdout = sys.__stdout__ = self._stdout  # type: ignore[misc]
        sys.stderr = sys.__stderr__ = self._stderr  # type: ignore[misc]

    def open(self, descriptor: int, mode: str, name: str) -> io.TextIOWrapper:
        """One stream: UTF-8, no translation of line ends on output, and no error for what is not text."""
        raw = (_Counted if descriptor == 2 else io.FileIO)(descriptor, mode, closefd=False)
        raw.name = name
        if mode == "r":
            stream = io.TextIOWrapper(io.BufferedReader(raw), encoding="utf-8", errors="surrogateescape")
        else:
            stream = io.TextIOWrapper(
                raw,  # type: ignore[arg-type]
                encoding="utf-8",
                errors="backslashreplace",
                newline="\n",
                write_through=True,
            )
        stream.mode = mode  # type: ignore[misc]
        return stream

    def write_error(self, text: str) -> None:
        """Writes to sys.stderr, as CPython does, and to descriptor 2 if the code has made that something else."""
        stream = getattr(sys, "stderr", None)
        if stream is not None and stream is not self._stderr and self._reaches_descriptor(stream, text):
            return
        try:
            _write(2, text.encode("utf-8", "backslashreplace"))
        except OSError:
            # The code closed the descriptor.
            pass

    def _reaches_descriptor(self, stream: Any, text: str) -> bool:
        """Writes to a stream of the code's own, and says whether that came out at standard error."""
        raw: Any = self._stderr.buffer
        before: int = raw.writes
        try:
            stream.write(text)
            stream.flush()
            return bool(raw.writes != before or stream.fileno() == 2)
        except BaseException:
            return bool(raw.writes != before)
