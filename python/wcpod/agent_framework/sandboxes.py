"""The sandboxes of a provider: made when they are needed, warm from then on, a few for each way of setting them up."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from wcpod.exceptions import SandboxClosed
from wcpod.sandbox import FetchPolicy, Sandbox
from wcpod.sandbox.options import SandboxOptions

_MOST_IDLE = 4

Forwarder = Callable[[str], Callable[..., Any]]


class Setup(NamedTuple):
    """What a sandbox is made for. Two executions with equal ones share it, one after the other."""

    tools: tuple[str, ...]
    hosts: tuple[str, ...]
    depth: int
    """How many executions are under way around it. A sandbox cannot run code for a tool that its own run waits for."""


@dataclass
class _Lent:
    sandbox: Sandbox
    users: int = 0


class Sandboxes:
    """Sandboxes by what they are made for, and how often their code called each host function. Thread-safe."""

    def __init__(self, options: SandboxOptions, forwarder: Forwarder) -> None:
        self._options = options
        self._forwarder = forwarder
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._lent: OrderedDict[Setup, _Lent] = OrderedDict()
        self._of_parents: list[object] = []
        self._calls: Counter[str] = Counter()
        self._closed = False

    @asynccontextmanager
    async def sandbox(self, setup: Setup) -> AsyncIterator[Sandbox]:
        """Lends a sandbox; the event loop goes on while one boots."""
        self._begin_in_child()
        while (lent := self._taken(setup)) is None:
            await asyncio.to_thread(self._make, setup)
        try:
            yield lent.sandbox
        finally:
            self._give_back(lent)

    def count(self, name: str, calls: int) -> None:
        """Counts calls of a host function."""
        with self._lock:
            self._calls[name] += calls

    @property
    def counts(self) -> dict[str, int]:
        """A copy: host function → calls."""
        with self._lock:
            return dict(self._calls)

    def close(self) -> None:
        """Gives the micro-VMs back; runs under way are cancelled."""
        with self._lock:
            self._closed = True
            lent = list(self._lent.values())
            self._lent.clear()
        for one in lent:
            one.sandbox.close()

    def _begin_in_child(self) -> None:
        """After a fork: the parent's micro-VMs stay the parent's, and a thread of his may have held the lock."""
        if self._process != os.getpid():
            self._of_parents.append(self._lent)
            self._process, self._lock, self._lent = os.getpid(), threading.Lock(), OrderedDict()

    def _taken(self, setup: Setup) -> _Lent | None:
        with self._lock:
            lent = self._lent.get(setup)
            if lent is not None:
                lent.users += 1
                self._lent.move_to_end(setup)
            return lent

    def _make(self, setup: Setup) -> None:
        if self._closed:
            raise SandboxClosed("this provider was closed")
        options: SandboxOptions = {
            **self._options,
            "tools": {name: self._forwarder(name) for name in setup.tools},
            "policy": FetchPolicy(setup.hosts) if setup.hosts else None,
        }
        made = Sandbox(**options)
        with self._lock:
            wanted = not self._closed and setup not in self._lent
            if wanted:
                self._lent[setup] = _Lent(made)
        if not wanted:
            made.close()

    def _give_back(self, lent: _Lent) -> None:
        with self._lock:
            lent.users -= 1
            idle = [setup for setup, one in self._lent.items() if not one.users]
            surplus = [self._lent.pop(setup) for setup in idle[: max(0, len(idle) - _MOST_IDLE)]]
        for one in surplus:
            one.sandbox.close()
