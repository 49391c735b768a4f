# ---- The sandbox has one thread: work is done when it is submitted, in the name of a worker.
import _thread
import contextvars
import sys


class _Worker:
    """One worker of a pool: a thread that is never started, its context, and what its initializer needs."""

    def __init__(self, pool, number):
        self._thread = threading.Thread(name=f"{pool._thread_name_prefix or pool}_{number}")
        self._thread._ident = threading._new_ident()
        self._thread._started.set()
        inherit = sys.flags.thread_inherit_context
        self._variables = contextvars.copy_context() if inherit else contextvars.Context()
        self._context = pool._create_worker_context()
        self._ready = False
        self._busy = False

    def do(self, pool, item):
        # A job that waits for another job of a full pool has it done by the same worker.
        variables = self._variables.copy() if self._busy else self._variables
        outer, self._busy = self._busy, True
        with threading._Turn(self._thread._ident):
            active = threading._active.get(self._thread._ident)
            threading._active[self._thread._ident] = self._thread
            try:
                variables.run(self._run, pool, item)
            finally:
                self._busy = outer
                if active is None:
                    del threading._active[self._thread._ident]

    def _run(self, pool, item):
        if not self._ready:
            try:
                self._context.initialize()
            except BaseException:
                _base.LOGGER.critical("Exception in initializer:", exc_info=True)
                pool._work_queue.put(item)
                pool._initializer_failed()
                return
            self._ready = True
        item.run(self._context)


def _submit(self, fn, /, *args, **kwargs):
    with self._shutdown_lock:
        if self._broken:
            raise self.BROKEN(self._broken)
        if self._shutdown:
            raise RuntimeError("cannot schedule new futures after shutdown")
    future = _base.Future()
    item = _WorkItem(future, self._resolve_work_item_task(fn, args, kwargs))
    state = self.__dict__.setdefault("_workers", {"made": [], "busy": 0})
    made, busy = state["made"], state["busy"]
    if busy == len(made) < self._max_workers:
        made.append(_Worker(self, busy))
    state["busy"] += 1
    try:
        made[min(busy, len(made) - 1)].do(self, item)
    finally:
        state["busy"] -= 1
    if isinstance(future.exception(), _thread._not_the_threads_own):
        raise future.exception()
    return future


_submit.__name__, _submit.__qualname__ = "submit", "ThreadPoolExecutor.submit"
_submit.__doc__ = ThreadPoolExecutor.submit.__doc__
ThreadPoolExecutor.submit = _submit
