"""The options of sandboxes and of their runs, spelled once for every class that takes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from typing import TypedDict

from wcpod.sandbox.limits import FetchLimits, Limits
from wcpod.sandbox.policy import FetchPolicy
from wcpod.sandbox.result import HostCall
from wcpod.sandbox.snapshot import Snapshot
from wcpod.sandbox.tools import Tools

OnCall = Callable[[HostCall], None]
OnOutput = Callable[[str, str], None]
Folder = str | PathLike[str]


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

    inputs: Mapping[str, bytes] | None
    """Files to place below /input, by name."""
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


def check_names(given: Iterable[str], known: type, whose: str) -> None:
    """Refuses keywords that there are not.

    Raises:
        TypeError: names the first one, and those that there are.
    """
    names = known.__annotations__
    for name in given:
        if name not in names:
            raise TypeError(f"{whose} has no option {name!r}; there are: {', '.join(names)}")
