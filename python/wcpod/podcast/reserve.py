"""Room on the disk that is kept for the work of a run: taken before anything is asked, given back when it is needed.

A disk that is full when a run begins ends the run before its first request. One that others fill during the run costs
no answer of an agent: what the run has kept back is room enough for its checkpoints and drafts.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from wcpod.exceptions import PipelineError

RESERVED_BYTES = 2 * 1024 * 1024
_NAME = "reserve.tmp"


class DiskFull(PipelineError):
    """There is no room on the disk for the work of a run."""


class Reserve:
    """Room in `folder`, held by a file."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / _NAME

    def take(self) -> None:
        """Hold the room.

        Raises:
            DiskFull: if there is none; nothing is left of the attempt.
        """
        try:
            handle = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                os.posix_fallocate(handle, 0, RESERVED_BYTES)
            finally:
                os.close(handle)
        except OSError as error:
            self.give_back()
            raise DiskFull(
                f"no room for the work of a run in {self._file.parent} ({error.strerror}): "
                f"free {RESERVED_BYTES // 1024 // 1024} MiB there; nothing was asked"
            ) from error

    def give_back(self) -> bool:
        """Free the room. False if it was not held."""
        with contextlib.suppress(OSError):
            self._file.unlink()
            return True
        return False
