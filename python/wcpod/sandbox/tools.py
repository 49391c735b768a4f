"""Tools of the host that the guest may call: plain functions, typed by their annotations."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import json
import math
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

Tool = Callable[..., Any]

MAX_DEPTH = 64
"""Deepest nesting of arguments and results."""

CALLERS_LOOP: contextvars.ContextVar[asyncio.AbstractEventLoop | None] = contextvars.ContextVar(
    "CALLERS_LOOP", default=None
)
"""The event loop that async tools run in, set by whoever awaits the run; without one each call gets its own."""

_RESERVED = frozenset({"fetch_url"})


class ToolTable:
    """Checks and calls the tools of one sandbox. Arguments and results cross as JSON."""

    def __init__(self, tools: Mapping[str, Tool] | None) -> None:
        self._tools = dict(tools or {})
        for name, tool in self._tools.items():
            if name in _RESERVED:
                raise ValueError(f"the tool name {name!r} is taken: the sandbox has it built in")
            if not name.isidentifier():
                raise ValueError(f"the tool name {name!r} is not an identifier")
            if not callable(tool):
                raise TypeError(f"the tool {name!r} is not callable")
        self._signatures = {name: inspect.signature(tool) for name, tool in self._tools.items()}
        self._hints = {name: _hints_of(tool) for name, tool in self._tools.items()}

    @property
    def names(self) -> list[str]:
        return list(self._tools)

    def dispatcher(self) -> Callable[[str, str, float], str] | None:
        """What the host core calls, in the context of whoever starts the run. None when there are no tools."""
        if not self._tools:
            return None
        context = contextvars.copy_context()
        return lambda name, arguments, seconds: context.copy().run(self._call, name, arguments, seconds)

    def _call(self, name: str, arguments: str, seconds: float) -> str:
        tool = self._tools.get(name)
        if tool is None:
            raise LookupError(f"there is no tool {name!r}; there are: {', '.join(['fetch_url', *self._tools])}")
        values = json.loads(arguments)
        if not isinstance(values, dict):
            raise TypeError("arguments must be given by name")
        self._check(name, values)
        result = tool(**values)
        if inspect.isawaitable(result):
            result = asyncio.run(_within(result, seconds))
        _check_depth(result)
        try:
            return json.dumps(result, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise TypeError(f"the tool {name!r} returned something that cannot cross to the guest: {error}") from None

    def _check(self, name: str, values: dict[str, Any]) -> None:
        try:
            self._signatures[name].bind(**values)
        except TypeError as error:
            raise TypeError(f"{name}(): {error}") from None
        for argument, value in values.items():
            hint = self._hints[name].get(argument, Any)
            if not fits(value, hint):
                raise TypeError(f"{name}(): {argument} must be {_spell(hint)}, not {type(value).__name__}")


async def _within(awaitable: Any, seconds: float) -> Any:
    return await asyncio.wait_for(awaitable, None if math.isinf(seconds) else seconds)


def _hints_of(tool: Tool) -> dict[str, Any]:
    target = tool if inspect.isroutine(tool) else type(tool).__call__
    try:
        return typing.get_type_hints(target)
    except (NameError, TypeError):
        return {}


def fits(value: Any, hint: Any) -> bool:
    """Whether a value out of JSON is what an annotation asks for. One that JSON cannot spell fits anything."""
    if hint is Any or isinstance(hint, typing.TypeVar):
        return True
    if hint is None or hint is type(None):
        return value is None
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, part) for part in arguments)
    if origin is typing.Literal:
        return any(type(value) is type(part) and value == part for part in arguments)
    if origin is typing.Annotated:
        return fits(value, arguments[0])
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint in (str, bool):
        return isinstance(value, hint)
    if hint is list or (origin is list and isinstance(value, list)):
        return isinstance(value, list) and (not arguments or all(fits(item, arguments[0]) for item in value))
    if hint is dict or (origin is dict and isinstance(value, dict)):
        return isinstance(value, dict) and (not arguments or all(fits(item, arguments[1]) for item in value.values()))
    return origin not in (list, dict)


def _spell(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "")


def _check_depth(value: Any) -> None:
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
        level = [
            item
            for outer in level
            if isinstance(outer, (list, tuple, dict))
            for item in (outer.values() if isinstance(outer, dict) else outer)
        ]
