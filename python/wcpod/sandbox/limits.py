"""Limits of a run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real

MIB = 1 << 20


def _check_kinds(limits: object, *, whole: tuple[str, ...], numbers: tuple[str, ...]) -> None:
    """Refuses what is no number, or no whole one, by the name of its field."""
    for names, kind, expected in ((whole, Integral, "an int"), (numbers, Real, "a number")):
        for name in names:
            value = getattr(limits, name)
            if not isinstance(value, kind):
                where = f"{type(limits).__name__}.{name}"
                raise TypeError(f"{where} must be {expected}, not {type(value).__name__}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one run may use. All are on by default; a larger number is the way to opt out."""

    seconds: float = 30.0
    """Wall-clock time of a run, in seconds, waits in host calls included; `math.inf` for none."""
    memory_mib: int = 128
    """Memory of the interpreter, in MiB (32 to 3072). A sandbox is made for its own limit; a run may ask for less."""
    output_bytes: int = 65536
    """Bytes kept of each output stream: half of them its first, half its last (at most 1 MiB). A run that writes a
    thousand times as much is ended."""
    host_calls: int = 100
    """Calls of `fetch_url` and tools; further ones are refused."""

    def __post_init__(self) -> None:
        _check_kinds(self, whole=("memory_mib", "output_bytes", "host_calls"), numbers=("seconds",))
        if not self.seconds > 0 or math.isnan(self.seconds):
            raise ValueError(f"Limits.seconds must be more than 0, not {self.seconds!r}")
        if not 32 <= self.memory_mib <= 3072:
            raise ValueError(f"Limits.memory_mib must be from 32 to 3072, not {self.memory_mib!r}")
        if not 2 <= self.output_bytes <= MIB:
            raise ValueError(f"Limits.output_bytes must be from 2 to {MIB}, not {self.output_bytes!r}")
        if self.host_calls < 0:
            raise ValueError(f"Limits.host_calls must not be negative, not {self.host_calls!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """Bounds of the fetches of one run, or of all runs of a `HyperlightRuntime`. All are on by default."""

    fetches: int = 100
    """Fetches, also those that were blocked, failed or answered from the cache."""
    seconds: float = 20.0
    """Time for one fetch, waits and redirects included."""
    total_bytes: int = 64 * MIB
    """Bytes of all pages together, after decompression."""
    page_bytes: int = 2 * MIB
    """Bytes of one page, after decompression; a longer one is cut there."""
    redirects: int = 5
    """Redirects followed in one fetch."""
    concurrent: int = 4
    """Fetches under way at the same time."""
    pause_seconds: float = 0.25
    """Pause between two requests to one host."""

    def __post_init__(self) -> None:
        whole = ("fetches", "total_bytes", "page_bytes", "redirects", "concurrent")
        _check_kinds(self, whole=whole, numbers=("seconds", "pause_seconds"))
        for name in ("fetches", "seconds", "total_bytes", "page_bytes", "concurrent"):
            value = getattr(self, name)
            if not value > 0:
                raise ValueError(f"FetchLimits.{name} must be more than 0, not {value!r}")
        for name in ("redirects", "pause_seconds"):
            value = getattr(self, name)
            if not value >= 0:
                raise ValueError(f"FetchLimits.{name} must not be negative, not {value!r}")
