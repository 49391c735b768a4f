"""One sandbox: a micro-VM that starts every run from the same clean snapshot."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, cast

from wcpod import _bridge
from wcpod.exceptions import SandboxClosed
from wcpod.sandbox.callbacks import Callbacks, Listener, is_inside, refuse_inside, serve
from wcpod.sandbox.image import image_path, snapshot_cache
from wcpod.sandbox.inputs import checked_inputs
from wcpod.sandbox.limits import MIB, Limits
from wcpod.sandbox.options import RunOptions, SandboxOptions, check_class, check_options
from wcpod.sandbox.result import ExecutionResult, Isolation
from wcpod.sandbox.snapshot import Snapshot
from wcpod.sandbox.tools import ToolTable

if TYPE_CHECKING:
    from typing_extensions import Unpack

State = Literal["created", "running", "finished", "destroyed"]
Done = Callable[[_bridge.Answer], None]

_log = logging.getLogger(__name__)
_open: weakref.WeakValueDictionary[int, Sandbox] = weakref.WeakValueDictionary()


@atexit.register
def _close_all() -> None:
    """Ends all runs while the interpreter can still be told of it."""
    # Other threads may make and drop sandboxes meanwhile, which an iteration would not survive.
    sandboxes = [sandbox for place in _open.valuerefs() if (sandbox := place()) is not None]
    for sandbox in sandboxes:
        sandbox._begin_close()
    for sandbox in sandboxes:
        sandbox.close()


def _after_fork() -> None:
    """The parent's sandboxes are none of the child's, and another thread may have held their locks."""
    for place in _open.valuerefs():
        if (sandbox := place()) is not None:
            sandbox._lock = threading.Lock()
    _open.clear()


os.register_at_fork(after_in_child=_after_fork)


def taken(answer: _bridge.Answer) -> object:
    """What a sandbox answered; what it survived goes to the log.

    Raises:
        SandboxError: or another, where that is the answer.
    """
    value, survived = answer.get()
    for what in survived:
        _log.warning("%s", what)
    return value


class Run:
    """One run, ready to be started."""

    def __init__(
        self,
        core: _bridge.SandboxCore,
        tools: ToolTable,
        limits: Limits,
        code: str,
        options: RunOptions,
        *,
        session: _bridge.FetchSession | None,
        audit: _bridge.AuditLog | None,
        agent: str | None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        check_options(options, RunOptions, "a run")
        limits = options.get("limits") or limits
        on_call, on_output = options.get("on_call"), options.get("on_output")
        self.wait = options.get("wait")
        self._callbacks = Callbacks(core)
        self._listener: Listener | None = None
        if on_call is not None or on_output is not None:
            self._listener = Listener(on_call, on_output, output_bytes=limits.output_bytes, agent=agent)
        calls = _bridge.ToolCalls(tools.names) if tools.names else None
        self.order = _bridge.RunOrder(
            checked_code(code),
            inputs=checked_inputs(options.get("inputs")),
            limits=limits,
            tools=calls,
            events=None if self._listener is None else self._listener.events,
            session=session,
            audit=audit,
            agent=agent,
        )
        if self._listener is not None:
            self._listener.start(self._callbacks)
        if calls is not None:
            serve(self._callbacks, tools, calls, loop)

    def result(self, answer: _bridge.Answer) -> ExecutionResult:
        """The result, unless a callback raised."""
        self._callbacks.over = True
        result = cast(ExecutionResult, taken(answer))
        if self._listener is not None and self._listener.failure is not None:
            raise self._listener.failure
        return result


def checked_code(code: str) -> str:
    """`code` with surrogate pairs joined and lone surrogates replaced.

    Raises:
        TypeError: it is not text.
    """
    if not isinstance(code, str):
        raise TypeError(f"the code must be a str, not {type(code).__name__}")
    return code.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class Sandbox:
    """Runs Python in a micro-VM, always from the clean snapshot.

    Usable from any thread; one run at a time, further ones wait. The GIL is free while the guest runs, and signals are
    handled: Ctrl-C stops the guest.
    """

    def __init__(self, **options: Unpack[SandboxOptions]) -> None:
        """Makes the micro-VM: about half a second the first time, a few milliseconds from then on.

        Args:
            options: those of `SandboxOptions`: limits, policy, fetch_limits, tools, archive, record, audit, contact,
                snapshot, cache.

        Raises:
            HypervisorUnavailable: no usable /dev/kvm.
            GuestImageError: the guest image is missing or does not boot.
            FetchPolicyError: the archive, the record folder or the audit file cannot be used.
        """
        self._prepare(options)
        self._start(None)

    def _prepare(self, options: SandboxOptions) -> None:
        check_options(options, SandboxOptions, "a sandbox")
        self._options = options
        self._limits = options.get("limits") or Limits()
        self._tools = ToolTable(options.get("tools"))
        audit = options.get("audit")
        self._audit = None if audit is None else _bridge.AuditLog(Path(audit))
        self._new_session()  # a folder that cannot be used is reported before the guest boots
        self._lock = threading.Lock()
        self._running = 0
        self._runs = 0
        self._closed = False

    def _start(self, done: Done | None) -> None:
        """Makes the micro-VM. With `done` returns at once; `done` gets the answer."""
        snapshot = self._options.get("snapshot")
        if snapshot is None:
            folder = snapshot_cache() if self._options.get("cache", True) else None
            self._vm = _bridge.SandboxCore.boot(image_path(), self._limits.memory_mib * MIB, folder, done)
        else:
            self._vm = _bridge.SandboxCore.from_snapshot(snapshot._inner, done)
        _open[id(self)] = self

    @property
    def isolation(self) -> Isolation:
        """Where code runs."""
        return self._vm.isolation

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
            if self._running:
                return "running"
            return "finished" if self._runs else "created"

    def run(self, code: str, **options: Unpack[RunOptions]) -> ExecutionResult:
        """Restores the clean snapshot and runs `code` as `__main__`.

        Args:
            code: Python source. A single fenced block, uniform indentation, a BOM and top-level `await` are understood.
            options: those of `RunOptions`: inputs, on_call, on_output, limits, wait.

        Returns:
            How it ended. A Python error of the code is a result.

        Raises:
            SandboxClosed: after close().
            SandboxError: the sandbox itself failed, or this was called from a callback of its own run.
            TimeoutError: it waited for its turn as long as it was to.
            ValueError: code and inputs together are larger than 3 MiB.
        """
        return self._run(code, options, session=self._new_session(), agent=None)

    def _new_run(
        self,
        code: str,
        options: RunOptions,
        session: _bridge.FetchSession | None,
        agent: str | None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> Run:
        refuse_inside(self._vm, "run()")
        if self._closed:
            raise SandboxClosed("this sandbox was closed")
        return Run(
            self._vm,
            self._tools,
            self._limits,
            code,
            options,
            session=session,
            audit=self._audit,
            agent=agent,
            loop=loop,
        )

    def _run(
        self, code: str, options: RunOptions, *, session: _bridge.FetchSession | None, agent: str | None
    ) -> ExecutionResult:
        run = self._new_run(code, options, session, agent)
        self._count(+1)
        try:
            return run.result(cast(_bridge.Answer, self._vm.run(run.order, run.wait)))
        finally:
            self._count(-1)

    def _count(self, change: int) -> None:
        with self._lock:
            self._running += change
            self._runs += change < 0

    def snapshot(self, *, of_last_run: bool = False) -> Snapshot:
        """The state that runs start from.

        Args:
            of_last_run: instead, what the last run left: modules that it imported, files that it wrote.

        Raises:
            SnapshotError: the last run did not end by itself, so what it left cannot be kept.
        """
        refuse_inside(self._vm, "snapshot()")
        if not of_last_run:
            return Snapshot(self._vm.clean())
        return Snapshot(cast(_bridge.Snapshot, taken(cast(_bridge.Answer, self._vm.capture()))))

    def restore(self, snapshot: Snapshot) -> None:
        """Makes `snapshot` the state that every run starts from."""
        check_class("snapshot", snapshot, Snapshot)
        refuse_inside(self._vm, "restore()")
        taken(cast(_bridge.Answer, self._vm.adopt(snapshot._inner)))

    def _new_session(self) -> _bridge.FetchSession | None:
        """Cache and counters of the fetches of one run."""
        policy, archive = self._options.get("policy"), self._options.get("archive")
        record = self._options.get("record")
        if policy is None:
            return None
        return _bridge.FetchSession(
            policy._inner,
            archive=None if archive is None else Path(archive),
            record=None if record is None else Path(record),
            limits=self._options.get("fetch_limits"),
            contact=self._options.get("contact"),
        )

    def close(self) -> None:
        """Gives the micro-VM back; a run under way is cancelled.

        May be called twice, from any thread, and from callbacks of a run, which it then does not wait for.
        """
        self._begin_close()
        if not is_inside(self._vm):
            self._vm.close(wait=True)

    def _begin_close(self) -> None:
        """Closes without waiting."""
        with self._lock:
            self._closed = True
        self._vm.close(wait=False)

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
