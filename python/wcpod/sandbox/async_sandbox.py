"""The sandbox for asyncio. No call of it holds a thread: the sandbox's own thread tells the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, cast

from wcpod import _bridge
from wcpod.sandbox.callbacks import is_inside, refuse_inside
from wcpod.sandbox.limits import Limits
from wcpod.sandbox.options import RunOptions, SandboxOptions, check_class
from wcpod.sandbox.result import ExecutionResult, Isolation
from wcpod.sandbox.sandbox import Sandbox, State, taken
from wcpod.sandbox.snapshot import Snapshot

if TYPE_CHECKING:
    from typing_extensions import Unpack

_CLOSING_SECONDS = 5.0
"""How long `close` waits for a run whose callback does not return."""
_STOPPING_SECONDS = 1.0
"""How long a cancelled run waits for its guest, which stops within milliseconds unless the machine is very busy."""


class AsyncSandbox:
    """A `Sandbox` whose methods are awaitable, and whose cancellation stops the guest."""

    def __init__(self, **options: Unpack[SandboxOptions]) -> None:
        """As `Sandbox`. Boots the guest right here; `await AsyncSandbox.create(...)` does not hold up the loop."""
        self._sandbox = Sandbox(**options)

    @classmethod
    async def create(cls, **options: Unpack[SandboxOptions]) -> AsyncSandbox:
        """As the constructor, without holding up the event loop."""
        made = cls.__new__(cls)
        made._sandbox = sandbox = Sandbox.__new__(Sandbox)
        sandbox._prepare(options)
        answered = Answered()
        sandbox._start(answered.take)
        try:
            taken(await answered.future)
        except BaseException:
            sandbox._vm.close(wait=False)
            raise
        return made

    @property
    def isolation(self) -> Isolation:
        """Where code runs."""
        return self._sandbox.isolation

    @property
    def limits(self) -> Limits:
        """What each run may use."""
        return self._sandbox.limits

    @property
    def state(self) -> State:
        """As `Sandbox.state`."""
        return self._sandbox.state

    async def snapshot(self, *, of_last_run: bool = False) -> Snapshot:
        """As `Sandbox.snapshot`."""
        if not of_last_run:
            return self._sandbox.snapshot()
        core = self._sandbox._vm
        refuse_inside(core, "snapshot()")
        return Snapshot(cast(_bridge.Snapshot, taken(await asked(core, core.capture))))

    async def restore(self, snapshot: Snapshot) -> None:
        """As `Sandbox.restore`."""
        check_class("snapshot", snapshot, Snapshot)
        core = self._sandbox._vm
        refuse_inside(core, "restore()")
        taken(await asked(core, lambda done: core.adopt(snapshot._inner, done)))

    async def run(self, code: str, **options: Unpack[RunOptions]) -> ExecutionResult:
        """As `Sandbox.run`. When the task is cancelled, the guest is stopped before `CancelledError` is raised."""
        sandbox = self._sandbox
        return await run(sandbox, code, options, session=sandbox._new_session(), agent=None)

    async def close(self) -> None:
        """As `Sandbox.close`."""
        sandbox = self._sandbox
        sandbox._begin_close()
        if is_inside(sandbox._vm):
            return
        end = asyncio.get_running_loop().time() + _CLOSING_SECONDS
        while not sandbox._vm.is_closed() and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(0.002)

    async def __aenter__(self) -> AsyncSandbox:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()


class Answered:
    """An answer that is awaited."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[_bridge.Answer] = self._loop.create_future()

    def take(self, answer: _bridge.Answer) -> None:
        """Called on the sandbox's thread."""
        with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits
            self._loop.call_soon_threadsafe(self._set, answer)

    def _set(self, answer: _bridge.Answer) -> None:
        if not self.future.done():
            self.future.set_result(answer)


async def asked(
    core: _bridge.SandboxCore, ask: Callable[[Callable[[_bridge.Answer], None]], object], wait: float | None = None
) -> _bridge.Answer:
    """Sends a message and awaits its answer. Cancellation takes it back, or stops its run, and goes on."""
    answered = Answered()
    number = cast(int, ask(answered.take))
    giving_up = None
    if wait is not None and math.isfinite(wait):
        giving_up = asyncio.get_running_loop().call_later(wait, core.take_back, number, wait)
    try:
        return await asyncio.shield(answered.future)
    except asyncio.CancelledError:
        core.cancel(number)
        await asyncio.wait([answered.future], timeout=_STOPPING_SECONDS)
        raise
    finally:
        if giving_up is not None:
            giving_up.cancel()  # it would keep the sandbox alive


async def run(
    sandbox: Sandbox, code: str, options: RunOptions, *, session: _bridge.FetchSession | None, agent: str | None
) -> ExecutionResult:
    """`Sandbox.run`, awaited."""
    started = sandbox._new_run(code, options, session, agent, asyncio.get_running_loop())
    core = sandbox._vm
    sandbox._count(+1)
    try:
        answer = await asked(core, lambda done: core.run(started.order, None, done), started.wait)
    finally:
        sandbox._count(-1)
    return started.result(answer)
