"""One run: code in, exit code and value out, everything else through the standard streams."""

# Functions below look built-in names up in a copy, which no code in the sandbox can change.
__builtins__ = dict(vars(__import__("builtins")))  # type: ignore[assignment]

import atexit
import builtins
import linecache
import os
import posix
import random
import sys
from ast import Expr, Expression, Module, PyCF_ALLOW_TOP_LEVEL_AWAIT
from inspect import CO_COROUTINE
from traceback import TracebackException
from types import CodeType, ModuleType
from typing import NoReturn

from . import relocation, source
from .host import Host, ToolError, clean
from .streams import Streams

#: Where code starts, and where a relative path leads.
HOME = "/tmp"

#: Longest value that is given back, in characters.
VALUE_CHARACTERS = 4096

#: Frames at either end of a traceback that are printed.
TRACEBACK_FRAMES = 1000

_S32 = 1 << 31

_Exception = BaseException


class Executor:
    """Runs code in the interpreter that this module lives in."""

    def __init__(self, host: Host, streams: Streams) -> None:
        self._host = host
        self._streams = streams
        self._at_home = False
        builtins.call_tool = host.call_tool  # type: ignore[attr-defined]
        builtins.ToolError = ToolError  # type: ignore[attr-defined]
        # An exit of the process would take the interpreter along, and with it the exit code.
        os._exit = posix._exit = _exit
        os.abort = posix.abort = _abort

    def run(self, code: str, tools: list[str]) -> tuple[int, str | None]:
        """Runs ``code`` as ``__main__``; its exit code, and the repr of its value if it has one."""
        self._host.begin(tools)
        self._refresh()
        main = ModuleType("__main__")
        main.__dict__["__builtins__"] = builtins
        sys.modules["__main__"] = main
        try:
            value = _run(code, main.__dict__)
            text = None if value is None else _bounded(repr(value))
            atexit._run_exitfuncs()
            return 0, text
        except SystemExit as end:
            return self._exit_code(end.code), None
        except _Exception as error:
            self._report(error)
            return 1, None

    def _refresh(self) -> None:
        """What has to be new for each run."""
        self._streams.begin()
        random.seed()
        if not self._at_home:
            try:
                os.chdir(HOME)
            except OSError:
                # The component is still being built.
                return
            self._at_home = True

    def _exit_code(self, code: object) -> int:
        if code is None:
            return 0
        if isinstance(code, int):
            return int(max(-_S32, min(_S32 - 1, code)))
        try:
            self._print(f"{code}\n")
        except _Exception as error:
            self._report(error)
        return 1

    def _report(self, error: BaseException) -> None:
        """Prints a traceback as CPython does, without the frames of this package."""
        try:
            _shorten(error)
            report = TracebackException.from_exception(error)
            _hide_own_frames(report)
            self._print("".join(report.format()))
        except _Exception:
            # The code broke what prints tracebacks, or its exception cannot be printed.
            self._print(f"{type(error).__name__}\n")

    def _print(self, text: str) -> None:
        self._streams.write_error(text.encode("utf-8", "backslashreplace"))


def _run(code: str, namespace: dict[str, object]) -> object:
    tree, text = source.parse(code)
    linecache.cache[source.FILENAME] = (len(text), None, text.splitlines(True), source.FILENAME)
    last = tree.body[-1] if tree.body else None
    parts = []
    if isinstance(last, Expr):
        del tree.body[-1]
    if tree.body:
        parts.append(_compiled(tree, "exec"))
    if isinstance(last, Expr):
        parts.append(_compiled(Expression(last.value), "eval"))
    value = None
    if not any(part.co_flags & CO_COROUTINE for part in parts):
        for part in parts:
            value = eval(part, namespace)
        return value
    import asyncio

    with asyncio.Runner() as runner:
        for part in parts:
            value = eval(part, namespace)
            if part.co_flags & CO_COROUTINE:
                value = runner.run(value)
    return value


def _compiled(tree: Module | Expression, mode: str) -> CodeType:
    code: CodeType = compile(tree, source.FILENAME, mode, PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    return code


def _bounded(text: str) -> str:
    if len(text) > VALUE_CHARACTERS:
        text = f"{text[:VALUE_CHARACTERS]}… ({len(text)} characters)"
    return clean(text)


def _shorten(error: BaseException) -> None:
    """Takes the middle out of a traceback that is too long to be printed in time."""
    frames = []
    traceback = error.__traceback__
    while traceback is not None:
        frames.append(traceback)
        traceback = traceback.tb_next
    if len(frames) > 2 * TRACEBACK_FRAMES:
        frames[TRACEBACK_FRAMES].tb_next = frames[-TRACEBACK_FRAMES]


def _hide_own_frames(report: TracebackException) -> None:
    pending: list[TracebackException | None] = [report]
    seen = set()
    while pending:
        one = pending.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        one.stack[:] = [frame for frame in one.stack if not frame.filename.startswith(relocation.OWN)]
        if not one.stack:
            one.stack = None  # type: ignore[assignment]
        pending += [one.__cause__, one.__context__, *(one.exceptions or ())]


def _exit(status: int = 0) -> NoReturn:
    raise SystemExit(status)


def _abort() -> NoReturn:
    raise SystemExit(134)
