"""A process pool that cannot start, for a sandbox that is one process."""

from concurrent.futures import _base

EXTRA_QUEUED_CALLS = 1


class BrokenProcessPool(_base.BrokenExecutor):
    """Never raised."""


class ProcessPoolExecutor(_base.Executor):
    """Says what to use instead."""

    def __init__(self, max_workers=None, mp_context=None, initializer=None, initargs=(), *, max_tasks_per_child=None):
        raise NotImplementedError("this sandbox cannot start processes: use ThreadPoolExecutor")
