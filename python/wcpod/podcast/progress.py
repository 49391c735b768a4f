"""What happens during a run, as events for whoever watches: the terminal, a log, a report."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from agent_framework import FunctionInvocationContext, function_middleware

from wcpod.codeact import LOAD_SKILL, MiddlewareFunction

if TYPE_CHECKING:
    from wcpod.sandbox import ExecutionResult, HostCall

STEPS = (
    "prepare",
    "SearchAgent",
    "adapt_content",
    "ContentAgent",
    "adapt_script",
    "GenScriptAgent",
    "save_scripts",
)
"""The steps of a run, in their order."""


@dataclass(frozen=True, slots=True)
class RunResumed:
    """The run goes on where an earlier one stopped: `after` is the last step that was done."""

    after: str


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A step of the graph begins."""

    step: str


@dataclass(frozen=True, slots=True)
class StepEnded:
    """A step of the graph is done."""

    step: str
    seconds: float


@dataclass(frozen=True, slots=True)
class SkillLoaded:
    """An agent loaded a skill."""

    agent: str
    skill: str


@dataclass(frozen=True, slots=True)
class CodeStarted:
    """The code of an agent is about to run."""

    agent: str
    code: str


@dataclass(frozen=True, slots=True)
class CodeEnded:
    """The code of an agent has run."""

    agent: str
    code: str
    result: ExecutionResult


@dataclass(frozen=True, slots=True)
class HostCalled:
    """The guest called a host function; the call has ended."""

    agent: str
    call: HostCall


@dataclass(frozen=True, slots=True)
class DraftReturned:
    """A draft broke the rules and went back to the model. Drafts count from 1."""

    draft: int
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SearchReturned:
    """Too few pages were read, and the search goes back to the model. Searches count from 1."""

    search: int
    problem: str


@dataclass(frozen=True, slots=True)
class EpisodeSaved:
    """The files of the day are in place."""

    files: tuple[Path, ...]


Event: TypeAlias = (
    RunResumed
    | StepStarted
    | StepEnded
    | SkillLoaded
    | CodeStarted
    | CodeEnded
    | HostCalled
    | DraftReturned
    | SearchReturned
    | EpisodeSaved
)
Listener: TypeAlias = Callable[[Event], None]


def ignore(event: Event) -> None:
    """A listener that does nothing."""


def make_skill_announcer(listener: Listener, agent: str) -> MiddlewareFunction:
    """Function middleware that tells the listener which skill an agent has loaded."""

    @function_middleware
    async def skill_announcer(context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        await call_next()
        arguments = context.arguments
        if context.function.name == LOAD_SKILL and not hasattr(arguments, "model_dump"):
            listener(SkillLoaded(agent, str(dict(arguments).get("skill_name", ""))))

    return skill_announcer
