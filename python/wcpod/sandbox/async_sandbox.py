"""The sandbox for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import TracebackType

from wcpod import _bridge
from wcpod.sandbox.limits import Limits
from wcpod.sandbox.policy import FetchPolicy
from wcpod.sandbox.result import ExecutionResult, Isolation
from wcpod.sandbox.sandbox import Folder, OnCall, Sandbox
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
        )

    @property
    def isolation(self) -> Isolation:
        """Where code runs."""
        return self._sandbox.isolation

    async def run(
        self,
        code: str,
        *,
        inputs: Mapping[str, bytes] | None = None,
        on_call: OnCall | None = None,
        limits: Limits | None = None,
    ) -> ExecutionResult:
        """As `Sandbox.run`. When the task is cancelled, the guest is stopped before `CancelledError` is raised."""
        sandbox = self._sandbox
        return await stoppable(
            lambda stop: sandbox._run(
                code, inputs, on_call, limits, session=sandbox._new_session(), agent=None, stop=stop
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
