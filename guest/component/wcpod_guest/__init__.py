"""The guest's Python: runs what a model wrote as ``__main__`` of a fresh namespace.

componentize-py imports this package once, when the component is built, and keeps the interpreter
as it is then: what is imported and warmed up here costs a run nothing. The modules of this package
leave ``sys.modules`` at the end of the build, so that no code in the sandbox finds them by name.
"""

import wit_world
from wit_world import Outcome

from . import relocation, warm_up
from .executor import Executor
from .host import Host
from .imports import install
from .streams import Streams

install()
warm_up.run()
_executor = Executor(Host(wit_world.fetch_url, wit_world.call_tool), Streams())


class WitWorld(wit_world.WitWorld):
    """The component's exports."""

    def execute(self, code: str, tools: list[str]) -> Outcome:
        exit_code, value = _executor.run(code, tools)
        return Outcome(exit_code, value)


relocation.finish()
