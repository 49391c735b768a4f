"""Several warm sandboxes of one snapshot."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, cast

from wcpod.exceptions import SandboxClosed, SandboxError
from wcpod.sandbox.async_sandbox import AsyncSandbox
from wcpod.sandbox.options import RunOptions, SandboxOptions, check_class
from wcpod.sandbox.result import ExecutionResult
from wcpod.sandbox.sandbox import Sandbox
from wcpod.sandbox.snapshot import Snapshot

if TYPE_CHECKING:
    from typing_extensions import Unpack


def _checked(size: int) -> int:
    check_class("size", size, int)
    if size < 1:
        raise ValueError(f"a pool needs a size of at least 1, not {size!r}")
    return size


def _of(snapshot: Snapshot, options: SandboxOptions) -> SandboxOptions:
    return cast(SandboxOptions, {**options, "snapshot": snapshot})


def _all_in_use(size: int, timeout: float | None) -> TimeoutError:
    return TimeoutError(f"all {size} sandboxes of the pool were in use for {timeout} s")


class SandboxPool:
    """Up to `size` sandboxes that share the memory of one clean snapshot, for runs side by side."""

    def __init__(self, size: int, **options: Unpack[SandboxOptions]) -> None:
        """Boots the first sandbox; further ones are made when they are needed, in about a millisecond.

        Args:
            size: most sandboxes at the same time, at least 1.
            options: as for `Sandbox`; all of them get the same.
        """
        self._size = _checked(size)
        first = Sandbox(**options)
        self._snapshot = first.snapshot()
        self._options = _of(self._snapshot, options)
        self._idle = [first]
        self._all = [first]
        self._making = 0
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

    def run(self, code: str, **options: Unpack[RunOptions]) -> ExecutionResult:
        """`Sandbox.run` on the next free sandbox; `wait` is for a sandbox to be free."""
        with self.sandbox(options.get("wait")) as lent:
            return lent.run(code, **options)

    def _take(self, timeout: float | None) -> Sandbox:
        with self._changed:
            if not self._changed.wait_for(
                self._ready, None if timeout is None else min(timeout, threading.TIMEOUT_MAX)
            ):
                raise _all_in_use(self._size, timeout)
            if self._closed:
                raise SandboxClosed("this pool was closed")
            if self._idle:
                return self._idle.pop()
            self._making += 1
        made: Sandbox | None = None
        try:
            made = Sandbox(**self._options)
        finally:
            closed = self._note(made)
        if closed:
            made.close()
            raise SandboxClosed("this pool was closed")
        return made

    def _ready(self) -> bool:
        return self._closed or bool(self._idle) or len(self._all) + self._making < self._size

    def _note(self, made: Sandbox | None) -> bool:
        """Notes a sandbox that was made outside the lock. Whether the pool was closed meanwhile."""
        with self._changed:
            self._making -= 1
            if made is not None and not self._closed:
                self._all.append(made)
            self._changed.notify()
            return self._closed

    def _give_back(self, lent: Sandbox) -> None:
        # Whatever the borrower made its base. Outside the lock, because a run of his may still be under way.
        usable = False
        try:
            with suppress(SandboxError):
                lent.restore(self._snapshot)
                usable = True
        finally:
            # Also where a signal's handler raised: a place that nobody gives back would be missing for ever.
            if not usable:
                lent._begin_close()
            with self._changed:
                if not self._closed:
                    (self._idle.append if usable else self._all.remove)(lent)
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


class AsyncSandboxPool:
    """A `SandboxPool` for asyncio. To be used in one event loop."""

    def __init__(self, size: int, first: AsyncSandbox, snapshot: Snapshot, options: SandboxOptions) -> None:
        """Private: use `await AsyncSandboxPool.create(...)`."""
        self._size = size
        self._snapshot = snapshot
        self._options = _of(snapshot, options)
        self._all = [first]
        self._idle = [first]
        self._making = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._closed = False

    @classmethod
    async def create(cls, size: int, **options: Unpack[SandboxOptions]) -> AsyncSandboxPool:
        """As the constructor of `SandboxPool`."""
        size = _checked(size)
        first = await AsyncSandbox.create(**options)
        return cls(size, first, await first.snapshot(), options)

    @property
    def size(self) -> int:
        """Most sandboxes at the same time."""
        return self._size

    @asynccontextmanager
    async def sandbox(self, timeout: float | None = None) -> AsyncIterator[AsyncSandbox]:
        """As `SandboxPool.sandbox`."""
        lent = await self._take(timeout)
        try:
            yield lent
        finally:
            await asyncio.shield(self._give_back(lent))

    async def run(self, code: str, **options: Unpack[RunOptions]) -> ExecutionResult:
        """As `SandboxPool.run`."""
        async with self.sandbox(options.get("wait")) as lent:
            return await lent.run(code, **options)

    async def _take(self, timeout: float | None) -> AsyncSandbox:
        if not self._ready():  # `wait_for` without a moment's time does not even look
            try:
                await asyncio.wait_for(self._wait_ready(), timeout)
            except asyncio.TimeoutError:
                raise _all_in_use(self._size, timeout) from None
        if self._closed:
            raise SandboxClosed("this pool was closed")
        if self._idle:
            return self._idle.pop()
        self._making += 1
        try:
            made = await AsyncSandbox.create(**self._options)
        finally:
            self._making -= 1
            self._wake()
        if self._closed:
            await made.close()
            raise SandboxClosed("this pool was closed")
        self._all.append(made)
        return made

    def _ready(self) -> bool:
        return self._closed or bool(self._idle) or len(self._all) + self._making < self._size

    async def _wait_ready(self) -> None:
        while not self._ready():
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn in self._waiting:
                    self._waiting.remove(turn)
                else:
                    self._wake()  # it was this one's turn already
                raise

    def _wake(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    async def _give_back(self, lent: AsyncSandbox) -> None:
        try:
            await lent.restore(self._snapshot)
            usable = True
        except SandboxError:
            usable = False
            await lent.close()
        if not self._closed:
            (self._idle.append if usable else self._all.remove)(lent)
        self._wake()

    async def close(self) -> None:
        """As `SandboxPool.close`."""
        self._closed = True
        sandboxes, self._all, self._idle = self._all, [], []
        while self._waiting:
            self._wake()
        await asyncio.gather(*(made.close() for made in sandboxes))

    async def __aenter__(self) -> AsyncSandboxPool:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
