# ---- The sandbox has one thread: what is waited for is not put in meanwhile.
if SimpleQueue is not _PySimpleQueue:
    import _queue
    import _thread

    class SimpleQueue(_queue.SimpleQueue):
        """Simple, unbounded, reentrant FIFO queue."""

        __slots__ = ()
        __module__ = "_queue"

        def get(self, block=True, timeout=None):
            """Remove and return an item from the queue; Empty if there is none in time."""
            if block and self.empty():
                if timeout is not None and timeout < 0:
                    raise ValueError("'timeout' must be a non-negative number")
                _thread._wait(-1 if timeout is None else timeout)
            return self.get_nowait()

    _queue.SimpleQueue = SimpleQueue
