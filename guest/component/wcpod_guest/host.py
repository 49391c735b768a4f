"""What the code in the sandbox can ask of the host: ``call_tool``."""

import builtins
import json
from collections.abc import Callable
from typing import Any

from componentize_py_types import Err

#: Bounds of one call. The host has its own; these give a clear error instead of a dead component.
ARGUMENT_BYTES = 1 << 20
ARGUMENT_DEPTH = 64
URL_CHARACTERS = 8192

_FORMATS = ("text", "html")

#: Exceptions of the host that keep their class here: built-in, made of one string, and nothing that
#: means something else to the interpreter.
_SAME_HERE: dict[str, type[Exception]] = {
    name: getattr(builtins, name)
    for name in """
    ArithmeticError AssertionError AttributeError BlockingIOError BrokenPipeError BufferError ConnectionAbortedError
    ConnectionError ConnectionRefusedError ConnectionResetError EOFError Exception FileExistsError FileNotFoundError
    FloatingPointError ImportError IndexError InterruptedError IsADirectoryError KeyError LookupError
    ModuleNotFoundError NameError NotADirectoryError NotImplementedError OSError OverflowError PermissionError
    ProcessLookupError ReferenceError RuntimeError TimeoutError TypeError ValueError ZeroDivisionError
    """.split()
}

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
_decode = json.JSONDecoder().decode


class ToolError(RuntimeError):
    """A tool of the host failed, or there is none of that name."""


ToolError.__module__ = "builtins"


class Host:
    """The host's functions, as the component imports them."""

    def __init__(self, fetch_url: Callable[[str, int, str], str], call_tool: Callable[[str, str], str]) -> None:
        self._fetch_url = fetch_url
        self._call_tool = call_tool
        self._tools: frozenset[str] = frozenset()

        def call(name: str, /, *args: object, **kwargs: object) -> object:
            """Calls a tool of the host by name, with keyword arguments only, and returns its result."""
            return self._call(name, args, kwargs)

        call.__name__ = call.__qualname__ = "call_tool"
        call.__module__ = "builtins"
        self.call_tool = call

    def begin(self, tools: list[str]) -> None:
        """Makes the tools of this run known."""
        self._tools = frozenset(tools)

    def _call(self, name: object, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        if type(name) is not str:
            raise TypeError(f"call_tool: the tool's name must be a str, not {type(name).__name__}")
        if name != "fetch_url" and name not in self._tools:
            known = ", ".join(sorted(self._tools | {"fetch_url"}))
            raise ToolError(f"there is no tool named {name[:100]!r}; there are: {known}")
        if args:
            example = "url=..." if name == "fetch_url" else "name=value"
            raise TypeError(f"call_tool: use keyword arguments, as in call_tool({name!r}, {example})")
        try:
            if name == "fetch_url":
                reply = self._fetch_url(*_fetch_arguments(**kwargs))
            else:
                reply = self._call_tool(name, _arguments_json(kwargs))
        except Err as failure:
            error = _exception(failure.value)
        else:
            return _decode(reply)
        raise error


def _fetch_arguments(
    url: object = None, offset: object = 0, format: object = "text", **unknown: object
) -> tuple[str, int, str]:
    if unknown:
        raise TypeError(f"fetch_url: there is no argument {next(iter(unknown))!r}; there are: url, offset, format")
    if type(url) is not str:
        raise TypeError(f"fetch_url: url must be a str, not {type(url).__name__}")
    if len(url) > URL_CHARACTERS:
        raise ValueError(f"fetch_url: url has {len(url)} characters, at most {URL_CHARACTERS} are allowed")
    if type(offset) is not int:
        raise TypeError(f"fetch_url: offset must be an int, not {type(offset).__name__}")
    if not 0 <= offset < 1 << 63:
        raise ValueError("fetch_url: offset must be a number of bytes, 0 or more")
    if type(format) is not str:
        raise TypeError(f"fetch_url: format must be a str, not {type(format).__name__}")
    if format not in _FORMATS:
        raise ValueError(f"fetch_url: format must be 'text' or 'html', not {format[:100]!r}")
    return clean(url), offset, format


def _arguments_json(kwargs: dict[str, object]) -> str:
    too_deep = f"call_tool: arguments are nested deeper than {ARGUMENT_DEPTH} levels"
    try:
        text = _encode(kwargs)
    except RecursionError:
        raise ValueError(too_deep) from None
    layer: list[Any] = [kwargs]
    depth = 0
    while layer:
        depth += 1
        if depth > ARGUMENT_DEPTH:
            raise ValueError(too_deep)
        layer = [
            child
            for parent in layer
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, (dict, list, tuple))
        ]
    text = clean(text)
    size = len(text.encode())
    if size > ARGUMENT_BYTES:
        raise ValueError(f"call_tool: arguments are {size} bytes of JSON, at most {ARGUMENT_BYTES} are allowed")
    return text


def _exception(description: str) -> Exception:
    """The exception that the host described."""
    try:
        fields = _decode(description)
        name, message = fields["type"], fields["message"]
    except (ValueError, TypeError, KeyError):
        return ToolError(description)
    if not isinstance(name, str) or not isinstance(message, str):
        return ToolError(description)
    known = _SAME_HERE.get(name)
    if known is not None:
        return known(message)
    if name.isidentifier() and name != "ToolError":
        named: type[ToolError] = type(name, (ToolError,), {"__module__": "builtins"})
        return named(message)
    return ToolError(message)


def clean(text: str) -> str:
    """Text that can leave the component: pairs of surrogates joined, lone ones replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
