"""What a run did, kept on the host while it runs: counters, timings, tokens, executions.

Not workflow state: the framework deep-copies that, and a copy of a counter counts nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from wcpod.codeact import Execution, ToolCallCounts, make_call_tool_counter
from wcpod.podcast.progress import CodeEnded, CodeStarted, HostCalled, Listener, StepEnded, StepStarted, ignore

if TYPE_CHECKING:
    from wcpod.sandbox import HostCall


class RunRecord:
    """The record of one run. Callbacks may come from any thread."""

    def __init__(self, listener: Listener = ignore) -> None:
        self.counts = ToolCallCounts()
        self.step_seconds: dict[str, float] = {}
        self.tokens: dict[str, dict[str, int]] = {}
        self.executions: list[Execution] = []
        self.drafts: list[str] = []
        self._listener = listener
        self._listening = threading.Lock()
        self._open: tuple[str, float] | None = None

    def begin(self, step: str) -> None:
        """A step begins; the one before it, if any, ends."""
        self.end()
        self._open = (step, time.monotonic())
        self.tell(StepStarted(step))

    def end(self) -> None:
        """The current step ends."""
        if self._open is not None:
            step, started = self._open
            self._open = None
            self.step_seconds[step] = self.step_seconds.get(step, 0.0) + time.monotonic() - started
            self.tell(StepEnded(step, self.step_seconds[step]))

    def observe(self, execution: Execution) -> None:
        """Take note of an execution, for `CodeActProvider(observer=)`."""
        if execution.result is None:
            self.tell(CodeStarted(execution.agent, execution.code))
        else:
            self.executions.append(execution)
            self.tell(CodeEnded(execution.agent, execution.code, execution.result))

    def on_call(self, agent: str) -> Callable[[HostCall], None]:
        """The `on_call=` of an agent: counts first, then tells the listener."""
        count = make_call_tool_counter(self.counts, agent)

        def count_and_tell(call: HostCall) -> None:
            count(call)
            self.tell(HostCalled(agent, call))

        return count_and_tell

    def add_tokens(self, agent: str, usage: Mapping[str, Any] | None) -> None:
        """Add the token counts that a model reported for an agent."""
        total = self.tokens.setdefault(agent, {})
        for name, number in (usage or {}).items():
            if isinstance(number, int):
                total[name] = total.get(name, 0) + number

    def tell(self, event: Any) -> None:
        """Pass an event on, one at a time."""
        with self._listening:
            self._listener(event)
