"""Runs in the guest: one module of CPython's tests out of /input/tests.zip, the outcomes into /output/outcomes.json.

On standard error a line for each test that starts, so that the host knows the last one of a run that was ended.
"""

from __future__ import annotations

import builtins
import importlib.util
import json
import os
import re
import sys
import types
import unittest
import zipfile
from pathlib import Path
from typing import Any

ORDER = json.loads(Path("/input/order.json").read_text())
TWIN = """\
import importlib.machinery
import importlib.util
spec = importlib.machinery.BuiltinImporter.find_spec({name!r})
module = importlib.util.module_from_spec(spec) if spec else importlib.import_module({name!r})
if spec:
    spec.loader.exec_module(module)
globals().update({{name: value for name, value in vars(module).items() if not name.startswith("__")}})
"""

SUB_TEST: type[Any] = vars(unittest.case)["_SubTest"]


def flat(suite: Any) -> list[Any]:
    return [test for part in suite for test in flat(part)] if isinstance(suite, unittest.TestSuite) else [suite]


class Outcomes(unittest.TestResult):
    """A word and a reason for each test: passed, failed or skipped."""

    def __init__(self, tests: list[Any]) -> None:
        super().__init__()
        self.tests = tests
        self.console = sys.__stderr__
        self.places = {id(test): place for place, test in enumerate(tests)}
        self.words: dict[int, tuple[str, str]] = {}
        self.fixtures: dict[str, tuple[str, str]] = {}

    def note(self, test: Any, word: str, why: str = "") -> None:
        place = self.places.get(id(test.test_case if isinstance(test, Replaced | SUB_TEST) else test))
        if place is None:
            # A class or module whose set-up ended: "setUpClass (test.test_x.Some)".
            self.fixtures[test.id().partition("(")[2].rstrip(")")] = (word, why)
        elif self.words.get(place, ("", ""))[0] != "failed":
            self.words[place] = (word, why)

    def startTest(self, test: Any) -> None:
        super().startTest(test)
        print(f"\x1eat {self.places[id(test)]}", file=self.console, flush=True)

    def addSuccess(self, test: Any) -> None:
        self.note(test, "passed")

    def addExpectedFailure(self, test: Any, err: Any) -> None:
        del err
        self.note(test, "passed")

    def addUnexpectedSuccess(self, test: Any) -> None:
        self.note(test, "failed", "unexpected success")

    def addSkip(self, test: Any, reason: str) -> None:
        self.note(test, "skipped", reason)

    def addError(self, test: Any, err: Any) -> None:
        self.note(test, "failed", f"{err[0].__name__}: {err[1]}"[:500])

    def addFailure(self, test: Any, err: Any) -> None:
        self.addError(test, err)

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        del subtest
        if err is not None:
            self.addError(test, err)

    def report(self) -> list[tuple[str, str, str]]:
        """Name, word and reason of each test; one that did not start shares what became of its class or module."""
        lines = []
        for place, test in enumerate(self.tests):
            name = str(test.id())
            above = [end for start, end in self.fixtures.items() if name.startswith(f"{start}.")]
            word, why = self.words.get(place) or (above[0] if above else ("failed", "did not start"))
            lines.append((name, word, why))
        return lines


class Replaced:
    """Stands where a test is that must not start, and says what counts for it."""

    def __init__(self, test: Any, word: str, why: str) -> None:
        self.test_case = test
        self.word, self.why = word, why

    def __call__(self, result: Outcomes) -> None:
        result.note(self, self.word, self.why)


class Missing(types.ModuleType):
    """Stands for one of CPython's own C test modules: a test that uses it is skipped, the others run."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def skip(*arguments: Any, **named: Any) -> Any:
            del arguments, named
            raise unittest.SkipTest(f"the guest has no {self.__name__}")

        return skip


def prepared(place: int, test: Any) -> Any:
    end = ORDER["ended"].get(str(place))
    return Replaced(test, "failed", f"ended the guest: {end}") if end else test


def allow_asyncio_without_sockets(support: Any) -> None:
    """The tests take it for granted that `asyncio` needs them."""
    support.has_socket_support = True


def allow_asyncio_without_child_watchers(_: Any) -> None:
    """The tests of 3.13 ask for one after each test; 3.14 has none."""
    import asyncio.events

    def get_child_watcher(self: Any) -> None:
        raise NotImplementedError

    setattr(asyncio.events._AbstractEventLoopPolicy, "get_child_watcher", get_child_watcher)  # noqa: B010


def allow_module_annotations(_: Any) -> None:
    """A module that the tests of 3.13 import changes its own `__annotations__`, which 3.14 makes only when asked."""
    builtins.__annotations__ = {}


def allow_debug_ranges(support: Any) -> None:
    """They are there; the tests ask a C test module whether they are."""
    support.has_no_debug_ranges = lambda: False


def prepare() -> None:
    """What the module needs so that it can be imported at all."""
    zipfile.ZipFile("/input/tests.zip").extractall("/tmp/cpython")
    Path("/tmp/here").mkdir()
    os.chdir("/tmp/here")
    sys.path.insert(0, "/tmp/cpython")
    from test import support  # type: ignore[import-not-found]

    support.use_resources = {}
    support.verbose = 0
    for name in ORDER["missing"]:
        sys.modules[name] = Missing(name)
    for name in ORDER["allow"]:
        globals()[f"allow_{name}"](support)


def load(module: str) -> list[Any]:
    """The module's tests. A pure-Python twin that the guest does not have is there while they load, and its own tests
    are left out."""
    absent = {twin: name for twin, name in ORDER["twins"].items() if importlib.util.find_spec(twin) is None}
    for twin, name in absent.items():
        Path(f"/tmp/cpython/{twin}.py").write_text(TWIN.format(name=name))
    importlib.invalidate_caches()
    tests = flat(unittest.defaultTestLoader.loadTestsFromName(f"test.{module}"))
    for twin in absent:
        Path(f"/tmp/cpython/{twin}.py").unlink()
        sys.modules.pop(twin, None)
        tests = [test for test in tests if not re.search(rf"^{twin}|\.(Py|Pure)", test.id())]
    return tests


def main() -> None:
    prepare()
    whole = ""
    try:
        tests = load(ORDER["module"])
    except unittest.SkipTest as skipped:
        tests, whole = [], str(skipped)
    outcomes = Outcomes(tests)
    unittest.TestSuite(prepared(place, test) for place, test in enumerate(tests))(outcomes)
    Path("/output/outcomes.json").write_text(json.dumps({"whole": whole, "tests": outcomes.report()}))


main()
