"""One run: code in, exit code and value out, everything else through the standard streams."""

# Functions below look built-in names up in a copy, which no code in the sandbox can change.
__builtins__ = dict(vars(__import__("builtins")))  # type: ignore[assignment]

import builtins
import linecache
import os
import posix
import random
import sys
from ast import Expr, Expression, Module, PyCF_ALLOW_TOP_LEVEL_AWAIT
from importlib.machinery import SourceFileLoader
from inspect import CO_COROUTINE
from traceback import TracebackException
from types import CodeType, ModuleType, TracebackType
from typing import Any, NoReturn

from . import ending, relocation, source
from .host import Host, ToolError, clean
from .streams import Streams
from .threads import HardExit

#: Where code starts, and where a relative path leads.
HOME = "/tmp"

#: Longest value that is given back, in characters.
VALUE_CHARACTERS = 4096

#: Frames at either end of a traceback that are printed.
TRACEBACK_FRAMES = 1000

_S32 = 1 << 31

_LEAVING = ("import", "open", "def", "class", "__", "eval", "exec", "compile", "vars", "globals", "locals", "help")

_open, _write, _close = posix.open, posix.write, posix.close

_Exception = BaseException


class Executor:
    """Runs code in the interpreter that this module lives in."""

    def __init__(self, host: Host, streams: Streams) -> None:
        self._host = host
        self._streams = streams
        self._at_home = False
        self._hard_exit: int | None = None
        builtins.call_tool = host.call_tool  # type: ignore[attr-defined]
        builtins.ToolError = ToolError  # type: ignore[attr-defined]
        # An exit of the process would take the interpreter along, and with it the exit code.
        os._exit = posix._exit = self._exit
        os.abort = posix.abort = self._abort

    def run(self, code: str, tools: list[str]) -> tuple[int, str | None]:
        """Runs ``code`` as ``__main__``; its exit code, and the repr of its value if it has one."""
        self._host.begin(tools)
        self._refresh()
        self._hard_exit = None
        exit_code, text, namespace = self._run_main(code)
        if self._hard_exit is None and _may_leave_something(code):
            try:
                exit_code = ending.finish(exit_code, namespace)
            except _Exception as error:
                self._report(error)
        if self._hard_exit is not None:
            exit_code = self._exit_code(self._hard_exit)
        return exit_code, text

    def _run_main(self, code: str) -> tuple[int, str | None, list[object]]:
        """What `run` gives, and the loader of ``__main__``, which nothing else holds."""
        main = ModuleType("__main__")
        namespace = main.__dict__
        namespace["__builtins__"] = builtins
        namespace["__file__"] = source.FILENAME
        namespace["__cached__"] = None
        loader = namespace["__loader__"] = SourceFileLoader("__main__", source.FILENAME)
        sys.modules["__main__"] = main
        try:
            value = _run(code, namespace)
            return 0, None if value is None else _bounded(repr(value)), [loader]
        except SystemExit as end:
            return self._exit_code(end.code), None, [loader]
        except _Exception as error:
            uncaught = error
        return self._uncaught(uncaught), None, [loader]

    def _uncaught(self, error: BaseException) -> int:
        """Does what CPython does with an exception that nobody caught; the exit code."""
        error.__traceback__ = _without_own_frames(error.__traceback__)
        sys.last_exc = sys.last_value = error
        sys.last_type, sys.last_traceback = type(error), error.__traceback__
        hook: Any = getattr(sys, "excepthook", self)
        if hook is ending.default_hook:
            self._report(error)
            return 1
        try:
            if hook is self:
                self._print("sys.excepthook is missing\n")
                self._report(error)
            else:
                hook(type(error), error, error.__traceback__)
        except SystemExit as end:
            return self._exit_code(end.code)
        except _Exception as second:
            self._print("Error in sys.excepthook:\n")
            self._report(second)
            self._print("\nOriginal exception was:\n")
            self._report(error)
        return 1

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

    def _exit(self, status: int = 0) -> NoReturn:
        """Exit to the system without running exit handlers, flushing buffers, etc."""
        self._hard_exit = status
        raise HardExit(status)

    def _abort(self) -> NoReturn:
        """Abort the interpreter immediately."""
        self._exit(134)

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
        self._streams.write_error(text)


def _run(code: str, namespace: dict[str, object]) -> object:
    tree, text = source.parse(code)
    _keep_source(text)
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


def _may_leave_something(code: str) -> bool:
    """Whether code may open a file, look at its own, or make something that has to be finalised: most code may.

    Without any of these words it reaches nothing but numbers, texts, containers, `print` and `call_tool`.
    """
    return any(word in code for word in _LEAVING)


def _keep_source(text: str) -> None:
    """Keeps the code for tracebacks and `inspect`, and as the file that `__file__` names."""
    linecache.cache[source.FILENAME] = (len(text), None, text.splitlines(True), source.FILENAME)
    if not _may_leave_something(text):
        return
    try:
        descriptor = _open(source.FILENAME, posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC)
        data = memoryview(text.encode("utf-8", "surrogatepass"))
        while data:
            data = data[_write(descriptor, data) :]
        _close(descriptor)
    except OSError:
        # The component is still being built, or an earlier run has filled the file system.
        pass


def _compiled(tree: Module | Expression, mode: str) -> CodeType:
    code: CodeType = compile(tree, source.FILENAME, mode, PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    return code


def _bounded(text: str) -> str:
    if len(text) > VALUE_CHARACTERS:
        text = f"{text[:VALUE_CHARACTERS]}… ({len(text)} characters)"
    return clean(text)


def _without_own_frames(traceback: TracebackType | None) -> TracebackType | None:
    while traceback is not None and traceback.tb_frame.f_code.co_filename.startswith(relocation.OWN):
        traceback = traceback.tb_next
    return traceback


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
