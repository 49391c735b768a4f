"""Ctrl-C and SIGTERM: both end a command the same way, each with its own exit code."""

from __future__ import annotations

import signal
from types import FrameType

_ended_by = signal.SIGINT


def treat_sigterm_as_ctrl_c() -> None:
    """Has SIGTERM do what Ctrl-C does: raise `KeyboardInterrupt`, or cancel the task that `asyncio.run` runs."""
    signal.signal(signal.SIGTERM, _terminate)


def interrupted() -> tuple[str, int]:
    """What ended the command, and its exit code: 128 and the signal's number."""
    # An interrupt that passed through `exec` of a text, as in the making of a dataclass, has CPython end the process by
    # SIGINT after all, whatever its exit code is; the next `exec` of a text makes it forget.
    exec("")
    return ("terminated" if _ended_by == signal.SIGTERM else "interrupted", 128 + _ended_by)


def _terminate(_number: int, frame: FrameType | None) -> None:
    global _ended_by
    _ended_by = signal.SIGTERM
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):
        handler(signal.SIGINT, frame)
    else:  # SIGINT is ignored, as for a job that a shell put into the background
        raise KeyboardInterrupt
