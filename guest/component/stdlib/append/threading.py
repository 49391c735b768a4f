# ---- The sandbox has one thread: a thread runs to its end where it is started.
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
        self._context = _contextvars.Context()
    ident = get_ident()
    starter = _active.get(ident)
    with _active_limbo_lock:
        _limbo[self] = self
    try:
        self._bootstrap_inner()
    finally:
        self._os_thread_handle = _Finished(ident)
        if starter is not None:
            _active[ident] = starter


_start.__name__ = _start.__qualname__ = "start"
Thread.start = _start


def _wait(self, timeout=None):
    if timeout is None:
        raise RuntimeError("would wait for ever: this sandbox has one thread")
    if timeout > 0:
        __import__("time").sleep(timeout)
    return False


_wait.__name__ = _wait.__qualname__ = "wait"
Condition.wait = _wait
