"""The end of a run, in the order of CPython's: exit handlers, standard streams, what the code made, open files."""

# Functions below look built-in names up in a copy, which no code in the sandbox can change.
__builtins__ = dict(vars(__import__("builtins")))  # type: ignore[assignment]

import _io
import atexit
import builtins
import gc
import sys
from typing import Any
from weakref import ref

from .threads import HardExit

_Exception = BaseException

#: Exit code of a program whose standard streams could not be flushed.
UNFLUSHED = 120

#: Names that the sandbox adds to the built-in ones.
OWN_NAMES = ("ToolError", "call_tool")

_run_exit_handlers, _count_exit_handlers = atexit._run_exitfuncs, atexit._ncallbacks
_collect, _tracked, _referrers = gc.collect, gc.get_objects, gc.get_referrers
default_hook, _default_unraisable_hook = sys.excepthook, sys.unraisablehook
_built_in = dict(vars(builtins))

#: Wrappers before what they wrap: each flushes into the next.
_FILES = (_io._TextIOBase, _io._BufferedIOBase, _io._RawIOBase)
_BUFFERS = (_io.TextIOWrapper, (_io.BufferedWriter, _io.BufferedRandom, _io.BufferedRWPair))


def finish(code: int, namespace: list[object]) -> int:
    """Ends a run whose own code is over; its exit code. `namespace` holds what otherwise only `__main__` does."""
    if _count_exit_handlers():
        _call_exit_handlers()
    if not all([_flushed("stdout"), _flushed("stderr")]):
        code = UNFLUSHED
    if not _quiet.issuperset(map(type, _tracked())):
        _finalise(ref(namespace.pop()))
    return code


def _finalise(namespace: ref[object]) -> None:
    """Lets go of what the code made, in CPython's order, and closes the files that are left."""
    _flush_files()
    _let_go()
    _collect()
    if namespace() is not None:
        _restore_builtins()
        _collect()
        _clear(namespace)
        _collect()
    _close_files()


def _call_exit_handlers() -> None:
    """Calls them as `atexit` does. A handler that has no frame of its own would show one of this package's."""
    hook = sys.unraisablehook
    if hook is _default_unraisable_hook:
        sys.unraisablehook = _without_own_frames
    _run_exit_handlers()
    if sys.unraisablehook is _without_own_frames:
        sys.unraisablehook = hook


def _without_own_frames(arguments: Any) -> None:
    if isinstance(arguments.exc_value, HardExit):  # no error: a handler ended the process
        return
    traceback = arguments.exc_traceback
    if traceback is not None and traceback.tb_frame.f_code.co_filename == __file__:
        error = arguments.exc_value.with_traceback(None)
        arguments = _UnraisableHookArgs([type(error), error, None, arguments.err_msg, arguments.object])
    _default_unraisable_hook(arguments)


def _flushed(name: str) -> bool:
    stream = getattr(sys, name, None)
    if stream is None or getattr(stream, "closed", False) is True:
        return True
    try:
        stream.flush()
    except _Exception as error:
        _unraisable(error, f"Exception ignored on flushing sys.{name}")
        return False
    return True


def _unraisable(error: BaseException, message: str) -> None:
    try:
        sys.unraisablehook(_UnraisableHookArgs([type(error), error, None, message, None]))
    except _Exception:
        # The code broke what prints it.
        pass


def _type_of_hook_arguments() -> Any:
    """The type that `sys.unraisablehook` takes; CPython names it nowhere."""

    class Failing:
        def __del__(self) -> None:
            raise ValueError

    seen: list[Any] = []
    sys.unraisablehook = lambda arguments: seen.append(type(arguments))
    Failing()
    sys.unraisablehook = sys.__unraisablehook__
    return seen[0]


_UnraisableHookArgs = _type_of_hook_arguments()


def _restore_builtins() -> None:
    """Drops what the code added to the built-in names: it may hold all that the code made."""
    for name in set(vars(builtins)) - set(_built_in) - set(OWN_NAMES):
        del vars(builtins)[name]


def _let_go() -> None:
    """Lets go of `__main__`, and of the streams and the hooks that the code put in the place of CPython's."""
    sys.modules["__main__"] = None  # type: ignore[assignment]
    for name, kept in (("stdin", "__stdin__"), ("stdout", "__stdout__"), ("stderr", "__stderr__")):
        if getattr(sys, name, None) is not getattr(sys, kept, None):
            setattr(sys, name, getattr(sys, kept, None))
    if getattr(sys, "excepthook", None) is not default_hook:
        sys.excepthook = default_hook
    if hasattr(sys, "last_exc"):
        for name in ("last_exc", "last_type", "last_value", "last_traceback"):
            vars(sys).pop(name, None)


def _clear(namespace: ref[object]) -> None:
    """Empties a namespace that something outside of it still holds, as CPython does: private names first."""
    for names in _referrers(namespace()):
        if isinstance(names, dict) and names.get("__loader__") is namespace():
            for private in (True, False):
                for name in list(names):
                    if name != "__builtins__" and (name[:1] == "_" and name[1:2] != "_") is private:
                        names[name] = None


def _flush_files() -> None:
    """Flushes what is open: in a cycle, CPython 3.14 may close a file before what is buffered for it is written."""
    left = _tracked()
    for kind in _BUFFERS:
        for one in left:
            if isinstance(one, kind):
                try:
                    one.flush()
                except _Exception:
                    # It is closed, or will say so again when it is closed.
                    pass


def _close_files() -> None:
    """Closes what a module or the interpreter itself still holds open."""
    left = [one for one in _tracked() if isinstance(one, _io._IOBase)]
    standard = [sys.__stdin__, sys.__stdout__, sys.__stderr__]
    for kind in _FILES:
        for one in left:
            if isinstance(one, kind) and one not in standard:
                try:
                    one.close()
                except _Exception as error:
                    _unraisable(error, "Exception ignored while closing a file")


def know_types() -> None:
    """Learns the types whose objects go without a trace; to be called when everything is imported."""
    kinds = [object]
    for kind in kinds:
        kinds += type.__subclasses__(kind)
    _quiet.update(kind for kind in kinds if not hasattr(kind, "__del__") and not issubclass(kind, type))


#: Types of objects that go without a trace. A class is none of them: its objects may be hidden from the collector.
_quiet: set[type[object]] = set()
