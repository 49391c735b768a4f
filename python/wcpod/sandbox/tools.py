"""Tools of the host that the guest may call: plain functions, typed by their annotations.

The guest is not trusted with any check: everything that it passes is checked here, before a tool is called.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import json
import keyword
import math
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from wcpod.sandbox.annotations import Reader, Unreadable, reader_of

Tool = Callable[..., Any]
Tools = Mapping[str, Tool] | Sequence[Tool]
"""Tools by name, or functions that are called by their own names."""

MAX_DEPTH = 64
"""Deepest nesting of arguments and results."""

MAX_ARGUMENT_BYTES = 1 << 20
"""Most bytes of JSON that a call may pass."""

CALLERS_LOOP: contextvars.ContextVar[asyncio.AbstractEventLoop | None] = contextvars.ContextVar(
    "CALLERS_LOOP", default=None
)
"""The event loop that async tools run in, set by whoever awaits the run; without one each call gets its own."""

_RESERVED = frozenset({"fetch_url"})
_INFERRED = (bool, int, float, str, list, dict)
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class ToolTable:
    """Checks and calls the tools of one sandbox. Arguments and results cross as JSON.

    Raises:
        TypeError: something is no tool, or its arguments could not be checked.
        ValueError: the name of a tool cannot be used.
    """

    def __init__(self, tools: Tools | None) -> None:
        self._tools = {name: _CheckedTool(name, tool) for name, tool in _by_name(tools)}

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
            raise LookupError(f"there is no tool {name!r:.100}; there are: {', '.join(['fetch_url', *self._tools])}")
        result = tool.call(parse_arguments(arguments), seconds)
        _check_depth(result)
        try:
            text = json.dumps(result, ensure_ascii=False, allow_nan=False)
            text.encode()
            return text
        except UnicodeEncodeError:
            raise TypeError(f"the tool {name!r} returned half of a surrogate pair, which is not text") from None
        except (TypeError, ValueError) as error:
            raise TypeError(f"the tool {name!r} returned something that cannot cross to the guest: {error}") from None


class _CheckedTool:
    """One tool, with a reader for each of its arguments."""

    def __init__(self, name: str, tool: Tool) -> None:
        self._name = name
        self._tool = tool
        self._asynchronous = inspect.iscoroutinefunction(_function_of(tool))
        hints = self._resolved_hints()
        self._signature = self._readable_signature()
        self._readers: dict[str, Reader] = {}
        self._others: Reader | None = None
        for parameter in self._signature.parameters.values():
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                self._others = self._reader(parameter, hints.get(parameter.name, Any))
            elif parameter.kind in _NAMED:
                hint = hints.get(parameter.name, _inferred(parameter.default))
                self._readers[parameter.name] = self._reader(parameter, hint)
            elif parameter.kind is inspect.Parameter.POSITIONAL_ONLY and parameter.default is parameter.empty:
                self._refuse(f"its argument {parameter.name!r} cannot be given by name")

    def call(self, values: dict[str, Any], seconds: float) -> Any:
        """Checks the values, calls the tool with what they stand for, and waits for its result."""
        checked = self._checked(values)
        if not self._asynchronous:
            result = self._tool(**checked)
            return _in_own_loop(result, seconds) if inspect.isawaitable(result) else result
        loop = CALLERS_LOOP.get()
        if loop is None or not loop.is_running():
            return _in_own_loop(self._tool(**checked), seconds)
        return _in_callers_loop(self._tool(**checked), loop, seconds)

    def _checked(self, values: dict[str, Any]) -> dict[str, Any]:
        try:
            self._signature.bind(**values)
        except TypeError as error:
            raise TypeError(f"{self._name}(): {error}") from None
        checked = {}
        for name, value in values.items():
            reader = self._readers.get(name, self._others)
            try:
                checked[name] = value if reader is None else reader(value, f"{name:.50}")
            except TypeError as error:
                raise TypeError(f"{self._name}(): {error}") from None
        return checked

    def _resolved_hints(self) -> dict[str, Any]:
        try:
            return typing.get_type_hints(_function_of(self._tool), include_extras=True)
        except Exception as error:
            self._refuse(f"its annotations cannot be resolved ({error})")

    def _readable_signature(self) -> inspect.Signature:
        try:
            return inspect.signature(self._tool)
        except (TypeError, ValueError):
            self._refuse("Python does not know its arguments; wrap it in a function of your own")

    def _reader(self, parameter: inspect.Parameter, hint: Any) -> Reader:
        try:
            reader = reader_of(hint)
        except Unreadable as error:
            self._refuse(f"its argument {parameter.name!r} is annotated {error}, which JSON has no form for")
        except Exception as error:
            self._refuse(f"the annotation of its argument {parameter.name!r} cannot be resolved ({error})")
        if parameter.default is None:
            return lambda value, where: None if value is None else reader(value, where)
        return reader

    def _refuse(self, reason: str) -> NoReturn:
        raise TypeError(f"the tool {self._name!r} cannot be offered: {reason}")


def parse_arguments(text: str) -> dict[str, Any]:
    """The arguments of a call, out of JSON that a hostile guest may have written.

    Raises:
        TypeError: it is no JSON object.
        ValueError: it is no JSON, too large, too deep, or holds something that JSON does not have.
    """
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_ARGUMENT_BYTES:
        raise ValueError(f"arguments are {size} bytes of JSON, at most {MAX_ARGUMENT_BYTES} are allowed")
    try:
        values = _decode(text)
    except RecursionError:
        raise ValueError(f"arguments are nested deeper than {MAX_DEPTH} levels") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"arguments are not JSON: {error}") from None
    if not isinstance(values, dict):
        raise TypeError("arguments must be given by name")
    try:
        _check_depth(values)
    except ValueError as error:
        raise ValueError(f"arguments are {error}") from None
    if "\\u" in text:
        try:
            json.dumps(values, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("arguments hold half of a surrogate pair, which is not text") from None
    return values


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"arguments name {twice!r:.50} twice in one object")
    return values


def _number(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"arguments hold a number that is too large: {text:.50}")
    return value


def _constant(text: str) -> NoReturn:
    raise ValueError(f"arguments hold {text}, which JSON does not have")


_decode = functools.partial(json.loads, object_pairs_hook=_object, parse_float=_number, parse_constant=_constant)


def _by_name(tools: Tools | None) -> list[tuple[str, Tool]]:
    """The tools with the names that they are called by, all of them checked."""
    if tools is None:
        return []
    named: list[tuple[Any, Tool]]
    if isinstance(tools, Mapping):
        named = list(tools.items())
    elif isinstance(tools, Sequence) and not isinstance(tools, (str, bytes)):
        named = [(getattr(tool, "__name__", None), tool) for tool in tools]
        for name, tool in named:
            if name is None:
                raise TypeError(f"the tool {tool!r:.100} has no name of its own: use tools={{'name': tool}}")
    else:
        raise TypeError(f"tools must be a list of functions, or a dict of them by name, not {type(tools).__name__}")
    names: set[str] = set()
    for name, tool in named:
        if not isinstance(name, str):
            raise TypeError(f"the name of a tool must be a str, not {type(name).__name__}")
        if name in _RESERVED:
            raise ValueError(f"the tool name {name!r} is taken: the sandbox has it built in")
        if not name.isidentifier() or keyword.iskeyword(name):
            raise ValueError(f"the tool name {name!r} is not an identifier")
        if name in names:
            raise ValueError(f"there are two tools named {name!r}")
        if not callable(tool):
            raise TypeError(f"the tool {name!r} is not callable")
        names.add(name)
    return named


def _function_of(tool: Tool) -> Any:
    """The function whose annotations are those of the tool."""
    while isinstance(tool, functools.partial):
        tool = tool.func
    if isinstance(tool, type):
        return tool.__init__  # type: ignore[misc]  # its annotations are asked for, and it is not called
    return tool if inspect.isroutine(tool) else type(tool).__call__


def _inferred(default: Any) -> Any:
    """The annotation of an argument that has none: the type of its default, if that says something."""
    return type(default) if type(default) in _INFERRED else Any


def _in_own_loop(awaitable: Any, seconds: float) -> Any:
    async def within() -> Any:
        return await asyncio.wait_for(awaitable, None if math.isinf(seconds) else seconds)

    return asyncio.run(within())


def _in_callers_loop(awaitable: Any, loop: asyncio.AbstractEventLoop, seconds: float) -> Any:
    future = asyncio.run_coroutine_threadsafe(awaitable, loop)
    try:
        return future.result(None if math.isinf(seconds) else seconds)
    finally:
        future.cancel()  # does nothing to one that is done


def _check_depth(value: Any) -> None:
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
        inner = (
            item
            for outer in level
            if isinstance(outer, (list, tuple, dict))
            for item in (outer.values() if isinstance(outer, dict) else outer)
        )
        # A result may hold one thing in many places.
        level = list({id(item): item for item in inner if isinstance(item, (list, tuple, dict))}.values())
