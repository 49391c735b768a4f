"""The one sandbox that the agents of a run share."""

from __future__ import annotations

import threading
from collections import defaultdict
from types import TracebackType
from typing import TYPE_CHECKING

from wcpod.sandbox import async_sandbox
from wcpod.sandbox.limits import Limits
from wcpod.sandbox.options import RunOptions, SandboxOptions
from wcpod.sandbox.result import ExecutionResult, HostCall, Isolation
from wcpod.sandbox.sandbox import Sandbox, State
from wcpod.sandbox.snapshot import Snapshot

if TYPE_CHECKING:
    from typing_extensions import Unpack


class HyperlightRuntime:
    """One micro-VM for several agents: serialises their runs, restores the clean snapshot before each, and attributes
    every host call to the agent that caused it. Fetch limits and the cache of pages hold for its whole life."""

    def __init__(self, **options: Unpack[SandboxOptions]) -> None:
        """As `Sandbox`."""
        self._sandbox = Sandbox(**options)
        self._session = self._sandbox._new_session()
        self._lock = threading.Lock()
        self._counts: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))

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

    @property
    def host_call_counts(self) -> dict[str, dict[str, int]]:
        """For each agent, how often its code called each host function: blocked, failed and cut-off calls too."""
        with self._lock:
            return {agent: dict(counts) for agent, counts in self._counts.items()}

    def execute(self, code: str, *, agent: str, **options: Unpack[RunOptions]) -> ExecutionResult:
        """Restores the clean snapshot and runs `code` for `agent`. As `Sandbox.run`."""
        counted = self._counted(agent, options)
        return self._noted(agent, self._sandbox._run(code, counted, session=self._session, agent=agent))

    async def execute_async(self, code: str, *, agent: str, **options: Unpack[RunOptions]) -> ExecutionResult:
        """As `execute`, awaited. When the task is cancelled, the guest is stopped first."""
        counted = self._counted(agent, options)
        result = await async_sandbox.run(self._sandbox, code, counted, session=self._session, agent=agent)
        return self._noted(agent, result)

    def _counted(self, agent: str, options: RunOptions) -> RunOptions:
        on_call = options.get("on_call")

        def count(call: HostCall) -> None:
            self._count(agent, call.name, 1)
            if on_call is not None:
                on_call(call)

        return {**options, "on_call": count}

    def _noted(self, agent: str, result: ExecutionResult) -> ExecutionResult:
        """Counts the calls over the limit, of which only the first is reported while the run is under way."""
        for call in result.host_calls:
            self._count(agent, call.name, call.count - 1)
        return result

    def _count(self, agent: str, name: str, calls: int) -> None:
        if calls:
            with self._lock:
                self._counts[agent][name] += calls

    def snapshot(self, *, of_last_run: bool = False) -> Snapshot:
        """As `Sandbox.snapshot`."""
        return self._sandbox.snapshot(of_last_run=of_last_run)

    def restore(self, snapshot: Snapshot) -> None:
        """As `Sandbox.restore`."""
        self._sandbox.restore(snapshot)

    def close(self) -> None:
        """Gives the micro-VM back; a run under way is cancelled."""
        self._sandbox.close()

    def __enter__(self) -> HyperlightRuntime:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
