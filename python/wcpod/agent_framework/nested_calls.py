"""Calls that the code makes with `call_tool`: through the agent's function middleware, like calls of the model.

    model ── execute_code ──► middleware ──► guest ── call_tool ──► the same middleware ──► FunctionTool.invoke

What cannot be put off until somebody answers (a question for approval, an end of the agent's run) ends the guest.
"""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agent_framework import (
    Content,
    FunctionInvocationContext,
    FunctionMiddlewareTypes,
    FunctionTool,
    MiddlewareFailure,
    MiddlewareTermination,
    SessionContext,
    SupportsAgentRun,
    UserInputRequiredException,
)
from agent_framework._middleware import FunctionMiddlewarePipeline, categorize_middleware
from pydantic_core import to_jsonable_python

_SIGNALS = (MiddlewareFailure, MiddlewareTermination, UserInputRequiredException)
"""What the framework lets out of a tool call, to end or to interrupt the agent's run."""

EXECUTION: contextvars.ContextVar[NestedCalls | None] = contextvars.ContextVar("wcpod_execution", default=None)
"""The execution whose guest is calling."""


@dataclasses.dataclass
class NestedCalls:
    """The calls of one execution."""

    tools: Mapping[str, FunctionTool]
    approved: bool
    """Whether `execute_code` itself asked for approval, for tools that want it."""
    context: FunctionInvocationContext
    """Of `execute_code`: session and keyword arguments are handed on."""
    middleware: Sequence[FunctionMiddlewareTypes]
    depth: int
    stop: Callable[[], object] = lambda: None
    """Ends the run."""
    signal: BaseException | None = None
    """Why the agent's run is to end."""
    _numbers: itertools.count[int] = dataclasses.field(default_factory=lambda: itertools.count(1))

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """What a tool returned, in a form that has JSON.

        Raises:
            PermissionError: the tool wants approval, and there was none.
            Exception: the tool's own, or the middleware's.
        """
        tool = self.tools[name]
        if tool.approval_mode == "always_require" and not self.approved:
            raise PermissionError(f"the tool {name!r} wants approval, and this execution was not approved")
        try:
            result = await self._through_middleware(tool, arguments)
        except _SIGNALS as signal:
            self._end(signal)
            raise
        except TypeError as error:  # the framework's own kinds have private names
            raise TypeError(str(error)) from error
        if isinstance(result, Content) and result.type == "function_approval_request":
            raise PermissionError(f"the call of {name!r} wants an approval of its own, which code cannot wait for")
        return for_guest(result)

    async def _through_middleware(self, tool: FunctionTool, arguments: dict[str, Any]) -> Any:
        call_id = f"{self.context.metadata.get('call_id', 'execute_code')}/{next(self._numbers)}"
        context = FunctionInvocationContext(
            function=tool,
            arguments=arguments,
            session=self.context.session,
            metadata={"call_id": call_id, "called_by": "execute_code"},
            kwargs=self.context.kwargs,
            parent_service_session_state_keys=self.context.parent_service_session_state_keys,
        )

        async def invoke(inner: FunctionInvocationContext) -> Any:
            return await tool.invoke(arguments=inner.arguments, context=inner, tool_call_id=call_id, skip_parsing=True)

        return await FunctionMiddlewarePipeline(*self.middleware).execute(context, invoke)

    def _end(self, signal: BaseException) -> None:
        if self.signal is None:
            self.signal = signal
            self.stop()


def forwarder(name: str) -> Callable[..., Any]:
    """The host function that a sandbox calls for a tool: it finds the execution that the call belongs to."""

    async def forward(**arguments: Any) -> Any:
        execution = EXECUTION.get()
        if execution is None:
            raise RuntimeError(f"{name} was called outside of an execution")
        return await execution.call(name, arguments)

    return forward


def for_guest(value: Any) -> Any:
    """`value` as JSON has it: models and dataclasses as dicts, dates as text, what has no form as its `str`."""
    if isinstance(value, Content):
        value = [value]
    if isinstance(value, list) and value and all(isinstance(item, Content) for item in value):
        return "\n".join(item.text for item in value if item.type == "text" and item.text)
    return to_jsonable_python(value, bytes_mode="base64", fallback=str)


def middleware_of(agent: SupportsAgentRun, context: SessionContext) -> list[FunctionMiddlewareTypes]:
    """The function middleware of an agent: its client's, its own, that of its context providers."""
    client = getattr(getattr(agent, "client", None), "function_middleware", None) or []
    own = categorize_middleware(getattr(agent, "middleware", None), context.get_middleware())["function"]
    return [*client, *own]


async def finished(task: asyncio.Task[Any], calls: NestedCalls) -> Any:
    """What `task`, the run of the code, returned, unless a nested call ended the agent's run.

    Raises:
        BaseException: the signal of the nested call.
    """
    calls.stop = task.cancel
    try:
        result = await task
    except asyncio.CancelledError:
        if calls.signal is None:
            raise
    if calls.signal is not None:
        raise calls.signal
    return result
