"""What runs on the host while a run is under way: listeners and tools.

Both run on daemon threads of Python's own, one of each kind for a run that needs it, in a copy of the caller's context.
The run does not wait for them longer than it may. A callback may close its sandbox; to run something in it would wait
for itself, so that is refused.
"""

from __future__ import annotations

import _thread
import asyncio
import contextvars

from wcpod import _bridge
from wcpod.exceptions import SandboxError
from wcpod.sandbox.options import OnCall, OnOutput
from wcpod.sandbox.result import HostCall
from wcpod.sandbox.tools import CALLERS_LOOP, ToolTable


class Callbacks:
    """The callbacks of one run, as those know them that are called in them, or were started there and go on."""

    def __init__(self, core: _bridge.SandboxCore) -> None:
        self._core = id(core)
        self.over = False

    def are_of(self, core: _bridge.SandboxCore) -> bool:
        return not self.over and self._core == id(core)


_inside: contextvars.ContextVar[tuple[Callbacks, ...]] = contextvars.ContextVar("wcpod_inside", default=())
"""The runs in whose callbacks this code runs."""


def is_inside(core: _bridge.SandboxCore) -> bool:
    """Whether this is a callback of a run of that sandbox."""
    return any(callbacks.are_of(core) for callbacks in _inside.get())


def refuse_inside(core: _bridge.SandboxCore, what: str) -> None:
    """Refuses what would wait for the run that it is called from.

    Raises:
        SandboxError: this is a callback of a run of that sandbox.
    """
    if is_inside(core):
        raise SandboxError(
            f"{what} was called from a tool or a callback of a run of the same sandbox, and would wait for itself: "
            "use another sandbox"
        )


def _context(callbacks: Callbacks) -> contextvars.Context:
    """A copy of the caller's, in which it is known whose callbacks run."""
    context = contextvars.copy_context()
    context.run(_inside.set, (*_inside.get(), callbacks))
    return context


class Listener:
    """Hands the events of one run to the caller's functions. The first exception of theirs is kept."""

    def __init__(
        self, on_call: OnCall | None, on_output: OnOutput | None, *, output_bytes: int, agent: str | None
    ) -> None:
        self._on_call, self._on_output = on_call, on_output
        # Twice what a guest of ours may write to both streams before it is ended by itself.
        most = 4 * 1024 * output_bytes
        self.events = _bridge.Events(on_call is not None, on_output is not None, most, agent)
        self.failure: BaseException | None = None

    def start(self, callbacks: Callbacks) -> None:
        """Listens on a thread of its own until the run is over."""
        _thread.start_new_thread(_context(callbacks).run, (self._listen,))

    def _listen(self) -> None:
        while (event := self.events.next()) is not None:
            try:
                if isinstance(event, HostCall):
                    if self._on_call is not None:
                        self._on_call(event)
                elif self._on_output is not None:
                    self._on_output(*event)
            except BaseException as error:  # whatever it is, it belongs to the caller of the run
                if self.failure is None:
                    self.failure = error


def serve(
    callbacks: Callbacks,
    tools: ToolTable,
    calls: _bridge.ToolCalls,
    loop: asyncio.AbstractEventLoop | None,
) -> None:
    """Answers the tool calls of one run on a thread of its own, one after the other, until it is over.

    Async tools run in `loop`, or each in one of its own.
    """
    context = _context(callbacks)
    context.run(CALLERS_LOOP.set, loop)
    dispatch = context.run(tools.dispatcher)

    def answer() -> None:
        while dispatch is not None and (call := calls.next()) is not None:
            try:
                call.answer(dispatch(call.name, call.arguments, call.seconds_left()))
            except BaseException as error:  # whatever it is, the guest's code is told
                call.fail(_text_of(type(error).__name__), _text_of(error))

    _thread.start_new_thread(answer, ())


def _text_of(error: BaseException | str) -> str:
    try:
        return str(error).encode("utf-8", "replace").decode()
    except Exception:
        return ""
