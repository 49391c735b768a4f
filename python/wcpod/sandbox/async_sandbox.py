"""The sandbox for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import TracebackType

from wcpod import _bridge
from wcpod.sandbox.limits import Limits
from wcpod.sandbox.policy import FetchPolicy
from wcpod.sandbox.result import ExecutionResult, Isolation
from wcpod.sandbox.sandbox import Folder, OnCall, OnOutput, Sandbox, State
from wcpod.sandbox.snapshot import Snapshot
from wcpod.sandbox.tools import Tool


class AsyncSandbox:
    """A `Sandbox` whose run is awaitable, and whose cancellation stops the guest."""

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        policy: FetchPolicy | None = None,
        tools: Mapping[str, Tool] | None = None,
        archive: Folder | None = None,
        record: Folder | None = None,
        audit: Folder | None = None,
        contact: str | None = None,
        snapshot: Snapshot | None = None,
        cache: bool = True,
    ) -> None:
        """As `Sandbox`. Boots the guest right here; `await AsyncSandbox.create(...)` does it on a thread."""
        self._sandbox = Sandbox(
            limits=limits,
            policy=policy,
            tools=tools,
            archive=archive,
            record=record,
            audit=audit,
            contact=contact,
            snapshot=snapshot,
            cache=cache,
        )

    @classmethod
    async def create(
        cls,
        *,
        limits: Limits | None = None,
        policy: FetchPolicy | None = None,
        tools: Mapping[str, Tool] | None = None,
        archive: Folder | None = None,
        record: Folder | None = None,
        audit: Folder | None = None,
        contact: str | None = None,
        snapshot: Snapshot | None = None,
        cache: bool = True,
    ) -> AsyncSandbox:
        """As the constructor, without holding up the event loop."""
        return await asyncio.to_thread(
            cls,
            limits=limits,
            policy=policy,
            tools=tools,
            archive=archive,
            record=record,
            audit=audit,
            contact=contact,
            snapshot=snapshot,
            cache=cache,
        )

    @property
    def isolation(self) -> Isolation:
        """Where code runs."""
        return self._sandbox.isolation

    @property
    def state(self) -> State:
        """As `Sandbox.state`."""
        return self._sandbox.state

    async def snapshot(self, *, of_last_run: bool = False) -> Snapshot:
        """As `Sandbox.snapshot`."""
        return await asyncio.to_thread(self._sandbox.snapshot, of_last_run=of_last_run)

    async def restore(self, snapshot: Snapshot) -> None:
        """As `Sandbox.restore`."""
        await asyncio.to_thread(self._sandbox.restore, snapshot)

    async def run(
        self,
        code: str,
        *,
        inputs: Mapping[str, bytes] | None = None,
        on_call: OnCall | None = None,
        on_output: OnOutput | None = None,
        limits: Limits | None = None,
    ) -> ExecutionResult:
        """As `Sandbox.run`. When the task is cancelled, the guest is stopped before `CancelledError` is raised."""
        sandbox = self._sandbox
        return await stoppable(
            lambda stop: sandbox._run(
                code, inputs, on_call, limits, on_output, session=sandbox._new_session(), agent=None, stop=stop
            )
        )

    async def close(self) -> None:
        """As `Sandbox.close`."""
        await asyncio.to_thread(self._sandbox.close)

    async def __aenter__(self) -> AsyncSandbox:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()


async def stoppable(run: Callable[[_bridge.Stop], ExecutionResult]) -> ExecutionResult:
    """Awaits a run on a thread; cancellation stops the guest, waits for that, and goes on."""
    stop = _bridge.Stop()
    task = asyncio.ensure_future(asyncio.to_thread(run, stop))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        stop.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # looked at, so that nobody warns about it
        raise
