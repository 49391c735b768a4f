"""The one sandbox that the agents of a run share."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping
from types import TracebackType

from wcpod import _bridge
from wcpod.sandbox.async_sandbox import stoppable
from wcpod.sandbox.limits import Limits
from wcpod.sandbox.policy import FetchPolicy
from wcpod.sandbox.result import ExecutionResult, HostCall, Isolation
from wcpod.sandbox.sandbox import Folder, OnCall, Sandbox
from wcpod.sandbox.tools import Tool


class HyperlightRuntime:
    """One micro-VM for several agents: serialises their runs, restores the clean snapshot before each, and attributes
    every host call to the agent that caused it. Fetch limits and the cache of pages hold for its whole life."""

    def __init__(
        self,
        *,
        policy: FetchPolicy | None = None,
        limits: Limits | None = None,
        tools: Mapping[str, Tool] | None = None,
        archive: Folder | None = None,
        record: Folder | None = None,
        audit: Folder | None = None,
        contact: str | None = None,
    ) -> None:
        """As `Sandbox`."""
        self._sandbox = Sandbox(
            limits=limits,
            policy=policy,
            tools=tools,
            archive=archive,
            record=record,
            audit=audit,
            contact=contact,
        )
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
    def host_call_counts(self) -> dict[str, dict[str, int]]:
        """For each agent, how often its code called each host function: blocked, failed and cut-off calls too."""
        with self._lock:
            return {agent: dict(counts) for agent, counts in self._counts.items()}

    def execute(
        self,
        code: str,
        *,
        agent: str,
        on_call: OnCall | None = None,
        inputs: Mapping[str, bytes] | None = None,
        limits: Limits | None = None,
    ) -> ExecutionResult:
        """Restores the clean snapshot and runs `code` for `agent`. As `Sandbox.run`."""
        return self._execute(code, agent, on_call, inputs, limits, _bridge.Stop())

    async def execute_async(
        self,
        code: str,
        *,
        agent: str,
        on_call: OnCall | None = None,
        inputs: Mapping[str, bytes] | None = None,
        limits: Limits | None = None,
    ) -> ExecutionResult:
        """As `execute`, on a thread. When the task is cancelled, the guest is stopped first."""
        return await stoppable(lambda stop: self._execute(code, agent, on_call, inputs, limits, stop))

    def _execute(
        self,
        code: str,
        agent: str,
        on_call: OnCall | None,
        inputs: Mapping[str, bytes] | None,
        limits: Limits | None,
        stop: _bridge.Stop,
    ) -> ExecutionResult:
        def counted(call: HostCall) -> None:
            with self._lock:
                self._counts[agent][call.name] += 1
            if on_call is not None:
                on_call(call)

        return self._sandbox._run(code, inputs, counted, limits, session=self._session, agent=agent, stop=stop)

    def close(self) -> None:
        """Gives the micro-VM back; a run under way is cancelled."""
        self._sandbox.close()

    def __enter__(self) -> HyperlightRuntime:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
