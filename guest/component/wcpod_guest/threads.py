"""Locks and identities for a Python of one thread.

A thread runs to its end where it is started (`stdlib/append/threading.py`), so threads lie on each other like calls.
A lock that one of them holds cannot become free while another waits for it. CPython's own locks would stop the whole
interpreter there; these say so, or wait until their time-out is over.
"""

import _thread
import time
from importlib import _bootstrap
from types import SimpleNamespace
from typing import Any, NoReturn

FOR_EVER = -1

_sleep = time.sleep


class WouldWaitForEver(RuntimeError):
    """What the code waits for cannot happen."""


class HardExit(SystemExit):
    """`os._exit`: the run ends without its exit handlers."""


WouldWaitForEver.__name__ = WouldWaitForEver.__qualname__ = "RuntimeError"
HardExit.__name__ = HardExit.__qualname__ = "SystemExit"
WouldWaitForEver.__module__ = HardExit.__module__ = "builtins"

#: Exceptions that end the run and not only the thread that they are raised in.
NOT_THE_THREADS_OWN = (WouldWaitForEver, HardExit)

#: The identities of the threads that lie on each other; the last one runs.
idents = [_thread.get_ident()]


def get_ident() -> int:
    """Return a non-zero integer that uniquely identifies the current thread."""
    return idents[-1]


def wait(seconds: float) -> None:
    """Waits for what cannot happen."""
    if seconds < 0:
        raise WouldWaitForEver("would wait for ever: this sandbox has one thread")
    if seconds > 0:
        _sleep(seconds)


def _checked(blocking: bool, timeout: float) -> float:
    """How long `acquire` may wait, in seconds."""
    if not blocking:
        if timeout != FOR_EVER:
            raise ValueError("can't specify a timeout for a non-blocking call")
        return 0
    if timeout < 0 and timeout != FOR_EVER:
        raise ValueError("timeout value must be a non-negative number")
    if timeout > _thread.TIMEOUT_MAX:
        raise OverflowError("timeout value is too large")
    return timeout


class lock:
    """A lock object is a synchronization primitive."""

    __slots__ = ("__weakref__", "_held")

    def __init__(self) -> None:
        self._held = False

    def acquire(self, blocking: bool = True, timeout: float = FOR_EVER) -> bool:
        """Lock the lock; whether that succeeded."""
        seconds = _checked(blocking, timeout)
        if self._held:
            if seconds:
                wait(seconds)
            return False
        self._held = True
        return True

    def release(self) -> None:
        """Release the lock."""
        if not self._held:
            raise RuntimeError("release unlocked lock")
        self._held = False

    def locked(self) -> bool:
        """Return whether the lock is held."""
        return self._held

    def __enter__(self) -> bool:
        if self._held:
            wait(FOR_EVER)
        self._held = True
        return True

    def __exit__(self, *_: object) -> None:
        self.release()

    def _at_fork_reinit(self) -> None:
        self._held = False

    def __repr__(self) -> str:
        state = "locked" if self._held else "unlocked"
        return f"<{state} _thread.lock object at {id(self):#x}>"

    def __reduce_ex__(self, _: object) -> NoReturn:
        raise TypeError(f"cannot pickle '_thread.{type(self).__name__}' object")

    acquire_lock, release_lock, locked_lock = acquire, release, locked


class RLock:
    """A lock that whoever holds it may take again."""

    __slots__ = ("__weakref__", "_count", "_owner")

    def __init__(self) -> None:
        self._owner: int | None = None
        self._count = 0

    def acquire(self, blocking: bool = True, timeout: float = FOR_EVER) -> bool:
        """Lock the lock; whether that succeeded."""
        seconds = _checked(blocking, timeout)
        me = idents[-1]
        if self._count and self._owner != me:
            if seconds:
                wait(seconds)
            return False
        self._owner = me
        self._count += 1
        return True

    def release(self) -> None:
        """Release the lock."""
        if not self._count or self._owner != idents[-1]:
            raise RuntimeError("cannot release un-acquired lock")
        self._count -= 1
        if not self._count:
            self._owner = None

    def locked(self) -> bool:
        """Return whether the lock is held."""
        return self._count > 0

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def _is_owned(self) -> bool:
        return self._count > 0 and self._owner == idents[-1]

    def _recursion_count(self) -> int:
        return self._count if self._owner == idents[-1] else 0

    def _release_save(self) -> tuple[int, int | None]:
        if not self._count:
            raise RuntimeError("cannot release un-acquired lock")
        state = self._count, self._owner
        self._count, self._owner = 0, None
        return state

    def _acquire_restore(self, state: tuple[int, int | None]) -> None:
        self._count, self._owner = state

    def _at_fork_reinit(self) -> None:
        self._count, self._owner = 0, None

    def __repr__(self) -> str:
        state = "locked" if self._count else "unlocked"
        return f"<{state} _thread.RLock object owner={self._owner or 0} count={self._count} at {id(self):#x}>"

    __reduce_ex__ = lock.__reduce_ex__


lock.__module__ = RLock.__module__ = get_ident.__module__ = "_thread"


def install() -> None:
    """Puts them where `threading` finds them. Imports keep the locks of CPython, which nobody waits for there."""
    module: Any = _thread
    bootstrap: Any = _bootstrap
    bootstrap._thread = SimpleNamespace(**vars(module))
    module.lock = module.LockType = module.allocate_lock = module.allocate = lock
    module.RLock = RLock
    module.get_ident = get_ident
    module._idents, module._wait, module._not_the_threads_own = idents, wait, NOT_THE_THREADS_OWN
