"""The code is the file of a script: `__file__`, `sys.argv`, and what inspect, doctest, unittest, pickle make of it."""

from __future__ import annotations

import pytest

from wcpod import Sandbox

pytestmark = pytest.mark.microvm

WHERE = """\
import inspect, os, sys
from pathlib import Path
print(__file__, sys.argv, Path(__file__).parent.is_dir(), os.path.samefile(sys.argv[0], __file__), os.getcwd())
print(Path(__file__).read_text().splitlines()[0], os.path.dirname(inspect.getfile(inspect.currentframe())))
"""

SOURCES = """\
import dataclasses, inspect, sys
@dataclasses.dataclass
class Point:
    x: int = 1
    def move(self):
        return self.x
def f(a):
    return a
class Outer:
    class Inner: y = 2
print(*map(inspect.getsource, (Point, Point.move, f, Outer.Inner)), sep="")
print(len(inspect.getsourcelines(sys.modules["__main__"])[0]), inspect.getsourcelines(Point)[1])
"""

TESTED = """\
import doctest, pickle, unittest
def add(a, b):
    '''
    >>> add(1, 2)
    3
    >>> add(1, 1)
    3
    '''
    return a + b
class C: x = 1
print(type(pickle.loads(pickle.dumps(C()))) is C)
print(doctest.testmod(report=False))
class T(unittest.TestCase):
    def test(self): self.assertEqual(add(1, 2), 4)
unittest.main()
"""


def test_the_file_of_the_code(sandbox: Sandbox) -> None:
    result = sandbox.run(WHERE)
    assert result.stdout == "/tmp/main.py ['main.py'] True True /tmp\nimport inspect, os, sys /tmp\n", result


@pytest.mark.parametrize("form", ["{}", "```python\n{}```", "Look:\n```py\n{}```\nDone."])
def test_the_source_of_what_the_code_defines(sandbox: Sandbox, form: str) -> None:
    result = sandbox.run(form.format(SOURCES))
    lines = SOURCES.splitlines(keepends=True)
    shown = [*lines[1:6], *lines[4:6], *lines[6:8], lines[9]]  # the class, its method, the function, the inner class
    assert result.stdout == "".join(shown) + "\n12 2\n", result


def test_tests_in_the_code(sandbox: Sandbox) -> None:
    result = sandbox.run(TESTED)
    assert result.exit_code == 1
    assert result.stdout.startswith("True\n*****")
    assert 'File "/tmp/main.py", line 6, in __main__.add\n' in result.stdout
    assert result.stdout.endswith("TestResults(failed=1, attempted=2)\n"), result
    assert "AssertionError: 3 != 4" in result.stderr
    assert "FAILED (failures=1)" in result.stderr


def test_the_file_of_another_run_is_gone(sandbox: Sandbox) -> None:
    sandbox.run("import os  # the first")
    assert sandbox.run("print(open(__file__).read())").stdout == "print(open(__file__).read())\n"
    assert sandbox.run("import os\nprint(os.listdir('.'))").stdout == "['main.py']\n"
