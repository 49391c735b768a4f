# ---- The sandbox has one thread: a thread runs to its end where it is started, on top of whoever started it.
import _thread

from _threading_local import local  # that of C belongs to the one thread there is

_new_ident = _count(get_ident() + 4096, 4096).__next__


class _Turn:
    """Inside, the code has the identity of another thread, and no event loop runs."""

    def __init__(self, ident):
        self._ident = ident

    def __enter__(self):
        events = _sys.modules.get("asyncio.events")
        self._loop = events and events._get_running_loop()
        if self._loop is not None:
            self._task = _sys.modules["asyncio.tasks"]._swap_current_task(self._loop, None)
            events._set_running_loop(None)
        _thread._idents.append(self._ident)

    def __exit__(self, *_):
        _thread._idents.pop()
        if self._loop is not None:
            _sys.modules["asyncio.events"]._set_running_loop(self._loop)
            _sys.modules["asyncio.tasks"]._swap_current_task(self._loop, self._task)


class _Finished:
    """In place of the handle of a thread: it is over."""

    def __init__(self, ident):
        self.ident = ident

    def is_done(self):
        return True

    def join(self, timeout=None):
        pass

    def _set_done(self):
        pass


def _start(self):
    if not self._initialized:
        raise RuntimeError("thread.__init__() not called")
    if self._started.is_set():
        raise RuntimeError("threads can only be started once")
    if self._context is None:
        inherit = _sys.flags.thread_inherit_context
        self._context = _contextvars.copy_context() if inherit else _contextvars.Context()
    with _active_limbo_lock:
        _limbo[self] = self
    report = self._invoke_excepthook
    for_all = []

    def invoke_excepthook(thread):
        error = _sys.exception()
        if isinstance(error, _thread._not_the_threads_own):
            for_all.append(error)
        else:
            report(thread)

    self._invoke_excepthook = invoke_excepthook
    ident = _new_ident()
    try:
        with _Turn(ident):
            self._bootstrap_inner()
    finally:
        self._os_thread_handle = _Finished(ident)
        self._invoke_excepthook = report
    if for_all:
        raise for_all.pop()


def _join(self, timeout=None):
    if not self._initialized:
        raise RuntimeError("Thread.__init__() not called")
    if not self._started.is_set():
        raise RuntimeError("cannot join thread before it is started")
    if self is current_thread():
        raise RuntimeError("cannot join current thread")
    if self.is_alive():
        _thread._wait(-1 if timeout is None else max(timeout, 0))


def _wait(self, timeout=None):
    if not self._is_owned():
        raise RuntimeError("cannot wait on un-acquired lock")
    _thread._wait(-1 if timeout is None else max(timeout, 0))
    return False


for _name, _method, _of in (("start", _start, Thread), ("join", _join, Thread), ("wait", _wait, Condition)):
    _method.__name__, _method.__qualname__ = _name, f"{_of.__name__}.{_name}"
    _method.__doc__ = getattr(_of, _name).__doc__
    setattr(_of, _name, _method)
del _name, _method, _of
