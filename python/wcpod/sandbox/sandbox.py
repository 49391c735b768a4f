"""One sandbox: a micro-VM that starts every run from the same clean snapshot."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Literal

from wcpod import _bridge
from wcpod.exceptions import SandboxClosed
from wcpod.sandbox.audit import AuditFile
from wcpod.sandbox.image import image_path, snapshot_cache
from wcpod.sandbox.limits import MIB, Limits
from wcpod.sandbox.policy import FetchPolicy
from wcpod.sandbox.result import ExecutionResult, HostCall, Isolation
from wcpod.sandbox.snapshot import Snapshot
from wcpod.sandbox.tools import Tool, ToolTable

OnCall = Callable[[HostCall], None]
OnOutput = Callable[[str, str], None]
State = Literal["created", "running", "finished", "destroyed"]
Folder = str | PathLike[str]


class Sandbox:
    """Runs Python in a micro-VM, always from the clean snapshot.

    Usable from any thread; one run at a time, further ones wait. The GIL is free while the guest runs.
    """

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
        """Makes the micro-VM: about half a second the first time, a few milliseconds from then on.

        Args:
            limits: what each run may use.
            policy: the URLs that `call_tool("fetch_url", url=...)` may ask for; without one there is no network.
            tools: further functions for `call_tool`, by name; sync or async, typed by their annotations.
            archive: folder of recorded pages that stands in for the network, behind the same policy.
            record: folder that fetched pages are kept in, for `archive`.
            audit: file that gets one JSON line a fetch.
            contact: how a site can reach the operator, shown in the user agent.
            snapshot: start every run from this state; its memory is the most that a run may have.
            cache: take the clean state from the user's cache, and leave it there for the next process.

        Raises:
            HypervisorUnavailable: no usable /dev/kvm.
            GuestImageError: the guest image is missing or does not boot.
            FetchPolicyError: the archive or the record folder cannot be used.
        """
        self._limits = limits or Limits()
        self._policy = policy
        self._tools = ToolTable(tools)
        self._session_arguments = (
            None if archive is None else Path(archive),
            None if record is None else Path(record),
            contact,
        )
        self._audit = None if audit is None else AuditFile(Path(audit))
        self._new_session()  # a folder that cannot be used is told before the guest boots
        self._active: set[_bridge.Stop] = set()
        self._lock = threading.Lock()
        self._runs = 0
        self._closed = False
        if snapshot is None:
            folder = snapshot_cache() if cache else None
            self._vm = _bridge.MicroVm.boot(image_path(), self._limits.memory_mib * MIB, folder)
        else:
            self._vm = _bridge.MicroVm.from_snapshot(snapshot._inner)
        self._isolation = Isolation(
            tier="micro-vm",
            hypervisor=self._vm.hypervisor,
            privilege_mode="ring0" if self._vm.privilege_ring == 0 else "ring3",
        )

    @property
    def isolation(self) -> Isolation:
        """Where code runs."""
        return self._isolation

    @property
    def limits(self) -> Limits:
        """What each run may use."""
        return self._limits

    @property
    def state(self) -> State:
        """ "created", "running", "finished" (a run has ended, further ones may follow) or "destroyed"."""
        with self._lock:
            if self._closed:
                return "destroyed"
            if self._active:
                return "running"
            return "finished" if self._runs else "created"

    def run(
        self,
        code: str,
        *,
        inputs: Mapping[str, bytes] | None = None,
        on_call: OnCall | None = None,
        on_output: OnOutput | None = None,
        limits: Limits | None = None,
    ) -> ExecutionResult:
        """Restores the clean snapshot and runs `code` as `__main__`.

        Args:
            code: Python source. A single fenced block, uniform indentation, a BOM and top-level `await` are understood.
            inputs: files to place below /input, by name.
            on_call: called once for each host call when it has ended, however it ended; on another thread. An exception
                of its own is raised here after the run.
            on_output: called with "stdout" or "stderr" and the text that the code printed, while it runs; on another
                thread, in whole characters. Of a flood, what the limit keeps.
            limits: for this run; its memory at most the sandbox's own.

        Returns:
            What became of it. A Python error of the code is a result.

        Raises:
            SandboxClosed: after close().
            SandboxError: the sandbox itself failed.
            ValueError: code and inputs together are larger than 3 MiB.
        """
        stop = _bridge.Stop()
        return self._run(code, inputs, on_call, limits, on_output, session=self._new_session(), agent=None, stop=stop)

    def _run(
        self,
        code: str,
        inputs: Mapping[str, bytes] | None,
        on_call: OnCall | None,
        limits: Limits | None,
        on_output: OnOutput | None = None,
        *,
        session: _bridge.FetchSession | None,
        agent: str | None,
        stop: _bridge.Stop,
        warm: bool = False,
    ) -> ExecutionResult:
        limits = limits or self._limits
        with self._lock:
            if self._closed:
                raise SandboxClosed("this sandbox was closed")
            self._active.add(stop)

        def ended(record: _bridge.CallRecord) -> None:
            call = HostCall.of(record, agent)
            if self._audit is not None and call.fetch is not None:
                self._audit.append(call.fetch)
            if on_call is not None:
                on_call(call)

        try:
            report = self._vm.run(
                code.encode("utf-16", "surrogatepass").decode("utf-16", "replace"),
                inputs=[(name, bytes(content)) for name, content in (inputs or {}).items()],
                seconds=limits.seconds,
                memory_bytes=limits.memory_mib * MIB,
                output_bytes=limits.output_bytes,
                host_calls=limits.host_calls,
                stop=stop,
                dispatch=self._tools.dispatcher(),
                tools=self._tools.names,
                on_call=None if on_call is None and self._audit is None else ended,
                on_output=on_output,
                session=session,
                agent=agent,
                warm=warm,
            )
        finally:
            with self._lock:
                self._active.discard(stop)
                self._runs += 1
        return ExecutionResult.of(report, self._isolation, agent)

    def snapshot(self, *, of_last_run: bool = False) -> Snapshot:
        """The state that runs start from.

        Args:
            of_last_run: instead, what the last run left: modules that it imported, files that it wrote.

        Raises:
            SnapshotError: the last run did not come to its end, so what it left cannot be kept.
        """
        return Snapshot(self._vm.capture(not of_last_run))

    def restore(self, snapshot: Snapshot) -> None:
        """Makes `snapshot` the state that every run starts from."""
        self._vm.adopt(snapshot._inner)

    def _new_session(self) -> _bridge.FetchSession | None:
        """Cache and counters of the fetches of one run."""
        if self._policy is None:
            return None
        archive, record, contact = self._session_arguments
        return _bridge.FetchSession(self._policy._inner, archive, record, None, contact, None)

    def close(self) -> None:
        """Gives the micro-VM back; a run under way is cancelled. May be called twice, and from any thread."""
        with self._lock:
            self._closed = True
            active = list(self._active)
        for stop in active:
            stop.cancel()
        self._vm.close()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
