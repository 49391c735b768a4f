"""Several warm sandboxes of one snapshot."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from wcpod.exceptions import SandboxClosed, SandboxError
from wcpod.sandbox.result import ExecutionResult
from wcpod.sandbox.sandbox import OnCall, Sandbox


class SandboxPool:
    """Up to `size` sandboxes that share the memory of one clean snapshot, for runs side by side."""

    def __init__(self, size: int, **arguments: Any) -> None:
        """Boots the first sandbox; further ones are made when they are needed, in about a millisecond.

        Args:
            size: most sandboxes at the same time, at least 1.
            arguments: as for `Sandbox`; all of them get the same.
        """
        if size < 1:
            raise ValueError(f"a pool needs a size of at least 1, not {size!r}")
        self._arguments = arguments
        first = Sandbox(**arguments)
        self._snapshot = first.snapshot()
        self._idle = [first]
        self._all = [first]
        self._size = size
        self._changed = threading.Condition()
        self._closed = False

    @property
    def size(self) -> int:
        """Most sandboxes at the same time."""
        return self._size

    @contextmanager
    def sandbox(self, timeout: float | None = None) -> Iterator[Sandbox]:
        """Lends a sandbox; waits at most `timeout` seconds for one.

        Raises:
            TimeoutError: all were lent for that long.
            SandboxClosed: the pool was closed.
        """
        lent = self._take(timeout)
        try:
            yield lent
        finally:
            self._give_back(lent)

    def run(
        self, code: str, *, inputs: Mapping[str, bytes] | None = None, on_call: OnCall | None = None
    ) -> ExecutionResult:
        """`Sandbox.run` on the next free sandbox."""
        with self.sandbox() as lent:
            return lent.run(code, inputs=inputs, on_call=on_call)

    def _take(self, timeout: float | None) -> Sandbox:
        with self._changed:
            ready = self._changed.wait_for(lambda: self._closed or self._idle or len(self._all) < self._size, timeout)
            if self._closed:
                raise SandboxClosed("this pool was closed")
            if not ready:
                raise TimeoutError(f"all {self._size} sandboxes of the pool were in use for {timeout} s")
            if self._idle:
                return self._idle.pop()
            made = Sandbox(snapshot=self._snapshot, **self._arguments)
            self._all.append(made)
            return made

    def _give_back(self, lent: Sandbox) -> None:
        with self._changed:
            if self._closed:
                return
            try:
                lent.restore(self._snapshot)  # whatever the borrower made its base
                self._idle.append(lent)
            except SandboxError:
                self._all.remove(lent)
                lent.close()
            self._changed.notify()

    def close(self) -> None:
        """Gives all micro-VMs back; runs under way are cancelled."""
        with self._changed:
            self._closed = True
            sandboxes, self._all, self._idle = self._all, [], []
            self._changed.notify_all()
        for made in sandboxes:
            made.close()

    def __enter__(self) -> SandboxPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
