"""Event loops for a sandbox: time passes, tasks run, and there is nothing else to wait for.

Takes the place of the module of CPython that builds on sockets, signals and processes.
"""

import time

from . import base_events, events

__all__ = ("SelectorEventLoop", "_DefaultEventLoopPolicy", "EventLoop")


class _Clock:
    """In place of a selector: the only event is that time has passed."""

    def select(self, timeout=None):
        if timeout is None:
            raise RuntimeError("every task waits for something that cannot happen in this sandbox")
        if timeout > 0:
            time.sleep(timeout)
        return []

    def close(self):
        pass


class SelectorEventLoop(base_events.BaseEventLoop):
    """The event loop of the sandbox."""

    def __init__(self, selector=None):
        super().__init__()
        self._selector = _Clock() if selector is None else selector

    def close(self):
        super().close()
        self._selector.close()

    def _process_events(self, event_list):
        pass

    def _write_to_self(self):
        pass

    async def subprocess_exec(self, *args, **kwargs):
        raise OSError("this sandbox cannot start processes")

    subprocess_shell = subprocess_exec


EventLoop = SelectorEventLoop


class _DefaultEventLoopPolicy(events._BaseDefaultEventLoopPolicy):
    _loop_factory = SelectorEventLoop
