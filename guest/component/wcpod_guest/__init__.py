"""The guest's Python: runs what a model wrote as ``__main__`` of a fresh namespace.

componentize-py imports this package when the component is built, makes one ``WitWorld``, and keeps
the interpreter as it is then: what is imported and warmed up here costs a run nothing. The modules
of this package leave ``sys.modules`` at the end of the build, so that no code in the sandbox finds
them by name.
"""

import gc

import wit_world
from wit_world import Outcome

from . import census, ending, heap, relocation, threads, warm_up
from .executor import Executor
from .host import Host
from .imports import install
from .streams import Streams


class WitWorld(wit_world.WitWorld):
    """The component's exports."""

    def __init__(self) -> None:
        """Runs once, as the last Python code of the build."""
        install()
        threads.install()
        warm_up.run()
        self._run = Executor(Host(wit_world.fetch_url, wit_world.call_tool), Streams()).run
        ending.know_types()
        relocation.move()
        gc.collect()
        census.take()
        gc.collect()
        gc.freeze()
        heap.fill_holes()

    def execute(self, code: str, tools: list[str]) -> Outcome:
        exit_code, value = self._run(code, tools)
        return Outcome(exit_code, value)
