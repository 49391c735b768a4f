"""What nearly every run uses, imported and used once before the interpreter is kept."""

import importlib
import io
import sys

from .executor import Executor
from .host import Host
from .streams import Streams

#: Everything else is imported from the library when a run asks for it.
MODULES = """
base64 bisect collections contextlib copy dataclasses datetime enum functools hashlib heapq html html.entities
html.parser io itertools json math operator os random re statistics string textwrap time traceback typing
unicodedata urllib urllib.parse
""".split()

_PROGRAM = """
import json, re
from datetime import datetime
class Item:
    def __init__(self, name):
        self.name = name
    def __repr__(self):
        return f"Item({self.name!r})"
def walk(values):
    for value in values:
        yield Item(value)
numbers = {n: str(n) * 2 for n in range(20)}
text = ", ".join(sorted(numbers.values(), key=len, reverse=True))
data = json.loads(json.dumps({"a": [1, 2.5, None, True], "text": text, "ü": "\\u4e16"}))
found = re.findall(r"(\\d+), ", text), [*walk(data)], re.sub("a", "b", "aaa")
print(found, datetime.now().isoformat(), f"{3.14159:.2f}", 10**20 // 7)
try:
    1 / 0
except ZeroDivisionError as error:
    print(error)
found
"""


_PROGRAMS = (
    "print(1)",
    _PROGRAM,
    "def f():\n    return 1 / 0\n\nf()",
    "x = 1\nif x\n    1",
    "exit(3)",
)


def run() -> None:
    """Runs each way through the executor a few times, with streams that end here."""
    for name in MODULES:
        importlib.import_module(name)
    streams = sys.stdin, sys.stdout, sys.stderr
    executor = Executor(Host(lambda *_: "{}", lambda *_: "{}"), _Nowhere())
    for _ in range(20):
        for program in _PROGRAMS:
            executor.run(program, ["add"])
    sys.stdin, sys.stdout, sys.stderr = streams


class _Nowhere(Streams):
    """Standard streams that keep nothing."""

    def open(self, *_: object) -> io.TextIOWrapper:
        return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)

    def write_error(self, text: str) -> None:
        pass
