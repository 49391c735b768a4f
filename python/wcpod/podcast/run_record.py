"""What a run did, kept on the host while it runs: counters, timings, tokens, executions.

Not workflow state: the framework deep-copies that, and a copy of a counter counts nothing. A checkpoint holds the
record as plain values (`as_state`), so that a resumed run goes on counting.
"""

from __future__ import annotations

import dataclasses
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wcpod.codeact import Execution, ToolCallCounts, make_call_tool_counter
from wcpod.podcast.progress import CodeEnded, CodeStarted, HostCalled, Listener, StepEnded, StepStarted, ignore

if TYPE_CHECKING:
    from wcpod.sandbox import HostCall


@dataclass(frozen=True, slots=True)
class StepSpan:
    """A step of the graph that is done. Times are in seconds, `started` since the run began."""

    step: str
    started: float
    seconds: float


@dataclass(frozen=True, slots=True)
class CodeRun:
    """One execution of an agent's code."""

    agent: str
    code: str
    kind: str
    exit_code: int
    stdout: str
    stderr: str
    started: float
    seconds: float


@dataclass(frozen=True, slots=True)
class TimedCall:
    """One host call of the guest, with the time at which it began."""

    agent: str
    started: float
    call: HostCall


class RunRecord:
    """The record of one run. Callbacks may come from any thread."""

    def __init__(self, listener: Listener = ignore) -> None:
        self.counts = ToolCallCounts()  # one for good: the agents' middleware holds on to it
        self._listener = listener
        self._listening = threading.Lock()
        self.check: Callable[[str], None] = _allow
        """Called with the name of a step before it begins; what it raises ends the run."""
        self.clear()

    def clear(self) -> None:
        """Forget everything: a run begins."""
        self.run = uuid.uuid4().hex
        self.counts.restore({}, {}, ())
        self.steps: list[StepSpan] = []
        self.tokens: dict[str, dict[str, int]] = {}
        self.executions: list[CodeRun] = []
        self.host_calls: list[TimedCall] = []
        self.drafts: list[str] = []
        self.resumed = 0
        self.host_calls_before_resume: dict[str, dict[str, int]] = {}
        self.reported: dict[str, dict[str, int]] = {}  # by the results of the executions, and not by a callback
        self.searches = 0
        self._open: tuple[str, float] | None = None
        self._told = True
        self.resumed_after = ""
        self._clock = time.monotonic()

    def elapsed(self) -> float:
        """Seconds that the run has taken so far, those before a resumption included."""
        return time.monotonic() - self._clock

    @property
    def open_step(self) -> str | None:
        """The step that is under way."""
        return None if self._open is None else self._open[0]

    def spans(self) -> list[StepSpan]:
        """The steps so far, the open one included."""
        if self._open is None:
            return list(self.steps)
        step, started = self._open
        return [*self.steps, StepSpan(step, started, self.elapsed() - started)]

    @property
    def step_seconds(self) -> dict[str, float]:
        """Step → seconds that it took, all its tries together."""
        total: dict[str, float] = {}
        for span in self.steps:
            total[span.step] = total.get(span.step, 0.0) + span.seconds
        return total

    def begin(self, step: str) -> None:
        """A step begins; the one before it, if any, ends."""
        self.check(step)
        self.end()
        self._open, self._told = (step, self.elapsed()), True
        self.tell(StepStarted(step))

    def end(self) -> None:
        """The current step ends."""
        if self._open is not None:
            step, started = self._open
            self._open = None
            self.steps.append(StepSpan(step, started, self.elapsed() - started))
            if self._told:
                self.tell(StepEnded(step, self.step_seconds[step]))

    def observe(self, execution: Execution) -> None:
        """Take note of an execution, for `CodeActProvider(observer=)`."""
        result = execution.result
        if result is None:
            self.tell(CodeStarted(execution.agent, execution.code))
            return
        seconds = result.usage.seconds
        names = self.reported.setdefault(execution.agent, {})
        for call in result.host_calls:
            names[call.name] = names.get(call.name, 0) + 1
        self.executions.append(
            CodeRun(
                agent=execution.agent,
                code=_storable(execution.code),
                kind=result.kind,
                exit_code=result.exit_code,
                stdout=_storable(result.stdout),
                stderr=_storable(result.stderr),
                started=max(0.0, self.elapsed() - seconds),
                seconds=seconds,
            )
        )
        self.tell(CodeEnded(execution.agent, execution.code, result))

    def on_call(self, agent: str) -> Callable[[HostCall], None]:
        """The `on_call=` of an agent: counts first, then tells the listener."""
        count = make_call_tool_counter(self.counts, agent)

        def count_and_tell(call: HostCall) -> None:
            count(call)
            self.host_calls.append(TimedCall(agent, max(0.0, self.elapsed() - call.seconds), call))
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

    def as_state(self) -> dict[str, Any]:
        """The record as plain values, for a checkpoint."""
        return {
            "run": self.run,
            "elapsed": self.elapsed(),
            "open": None if self._open is None else list(self._open),
            "resumed": self.resumed,
            "steps": [dataclasses.asdict(span) for span in self.steps],
            "tokens": {agent: dict(numbers) for agent, numbers in self.tokens.items()},
            "executions": [dataclasses.asdict(run) for run in self.executions],
            "host_calls": [dataclasses.asdict(timed) for timed in self.host_calls],
            "drafts": list(self.drafts),
            "reported": {agent: dict(names) for agent, names in self.reported.items()},
            "searches": self.searches,
            "counts": self.counts.as_dict(),
            "rejected": self.counts.rejected(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `as_state` gave in an earlier process. The time between the two processes does not count."""
        self.run = state["run"]
        self._clock = time.monotonic() - state["elapsed"]
        self._open = None if state["open"] is None else (state["open"][0], state["open"][1])
        self.resumed = state["resumed"] + 1
        self.steps = [StepSpan(**span) for span in state["steps"]]
        self.tokens = {agent: dict(numbers) for agent, numbers in state["tokens"].items()}
        self.executions = [CodeRun(**run) for run in state["executions"]]
        self.host_calls = [_timed_call(**timed) for timed in state["host_calls"]]
        self.drafts = list(state["drafts"])
        self.reported = {agent: dict(names) for agent, names in state["reported"].items()}
        self.searches = state["searches"]
        calls = [(timed.agent, timed.call) for timed in self.host_calls]
        self.counts.restore(state["counts"], state["rejected"], calls)
        self.host_calls_before_resume = {}
        for agent, call in calls:
            names = self.host_calls_before_resume.setdefault(agent, {})
            names[call.name] = names.get(call.name, 0) + 1
        # A step that was done has only its end left, and that is no news.
        self._told = self._open is not None and self._open[0] != self.resumed_after
        if self._open is not None and self._told:
            self.tell(StepStarted(self._open[0]))


def _allow(_step: str) -> None:
    """Every step may begin."""


def _storable(text: str) -> str:
    """`text` without lone surrogates, which no file can hold."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _timed_call(agent: str, started: float, call: Mapping[str, Any]) -> TimedCall:
    from wcpod.sandbox import FetchRecord, HostCall

    fetch = call["fetch"]
    return TimedCall(agent, started, HostCall(**{**call, "fetch": None if fetch is None else FetchRecord(**fetch)}))
