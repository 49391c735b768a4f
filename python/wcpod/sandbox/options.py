"""The options of sandboxes and of their runs, spelled once for every class that takes them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import TypedDict

from wcpod.sandbox.limits import FetchLimits, Limits
from wcpod.sandbox.policy import FetchPolicy
from wcpod.sandbox.result import HostCall
from wcpod.sandbox.snapshot import Snapshot
from wcpod.sandbox.tools import Tools

OnCall = Callable[[HostCall], None]
OnOutput = Callable[[str, str], None]
Folder = str | PathLike[str]
Input = str | bytes | bytearray | memoryview | Path


class SandboxOptions(TypedDict, total=False):
    """What a sandbox is made with. All are keywords, and all may be left out."""

    limits: Limits | None
    """What each run may use; default `Limits()`."""
    policy: FetchPolicy | None
    """The URLs that `call_tool("fetch_url", url=...)` may ask for; without one there is no network."""
    fetch_limits: FetchLimits | None
    """Bounds of the fetches; default `FetchLimits()`."""
    tools: Tools | None
    """Further functions for `call_tool`, by name or with their own names; sync or async, typed by their annotations."""
    archive: Folder | None
    """Folder of recorded pages that stands in for the network, behind the same policy."""
    record: Folder | None
    """Folder that fetched pages are kept in, for `archive`."""
    audit: Folder | None
    """File that gets a JSON line for each fetch."""
    contact: str | None
    """How a site can reach the operator, shown in the user agent."""
    snapshot: Snapshot | None
    """Start every run from this state; its memory is the most that a run may have."""
    cache: bool
    """Take the clean state from the user's cache, and leave it there for the next process; default True."""


class RunOptions(TypedDict, total=False):
    """What one run is given. All are keywords, and all may be left out."""

    inputs: Mapping[str, Input] | None
    """Files to place below /input, by name: text (as UTF-8), bytes, or the `Path` of a file to read."""
    on_call: OnCall | None
    """Called for each host call when it has ended, however it ended; on another thread. An exception of its own is
    raised after the run."""
    on_output: OnOutput | None
    """Called with "stdout" or "stderr" and the text that the code printed, while it runs; on another thread, in whole
    characters. Of a flood, what the limit keeps."""
    limits: Limits | None
    """For this run; its memory at most the sandbox's own."""
    wait: float | None
    """Most seconds to wait for its turn, while other runs of the same sandbox are under way; default: no limit."""


_CLASSES: dict[str, tuple[type, ...]] = {
    "limits": (Limits,),
    "policy": (FetchPolicy,),
    "fetch_limits": (FetchLimits,),
    "archive": (str, PathLike),
    "record": (str, PathLike),
    "audit": (str, PathLike),
    "contact": (str,),
    "snapshot": (Snapshot,),
    "cache": (bool,),
    "inputs": (Mapping,),
    "wait": (Real,),
}
"""What the value of an option is an instance of. That of `tools` is checked with the tools."""


def check_options(given: Mapping[str, object], known: type, whose: str) -> None:
    """Refuses keywords that there are not, and values that cannot be meant.

    Raises:
        TypeError: names the first one.
        ValueError: `wait` is no length of time.
    """
    names = known.__annotations__
    for name, value in given.items():
        if name not in names:
            raise TypeError(f"{whose} has no option {name!r}; there are: {', '.join(names)}")
        if value is None and name != "cache":
            continue
        if name in _CLASSES:
            check_class(name, value, *_CLASSES[name])
        elif name.startswith("on_") and not callable(value):
            raise TypeError(f"{name} must be a function, not {type(value).__name__}")
        if isinstance(value, Real) and name == "wait" and (math.isnan(value) or value < 0):
            raise ValueError(f"wait must be 0 or more seconds, not {value!r}")


def check_class(name: str, value: object, *classes: type) -> None:
    """Refuses an argument of another class.

    Raises:
        TypeError: names the argument.
    """
    if not isinstance(value, classes):
        expected = " or ".join("number" if one is Real else one.__name__ for one in classes)
        article = "an" if expected[0] in "aeiou" else "a"
        raise TypeError(f"{name} must be {article} {expected}, not {type(value).__name__}")
