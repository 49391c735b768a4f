"""CPython's own tests in a restored guest: as many pass as `tests/cases/cpython_tests.json` records.

A part of the selection runs always, the whole of it with `--soak`; `make cpython-tests` records it anew.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import cpython_suite
from wcpod import Sandbox

CASES = json.loads(cpython_suite.CASES.read_text(encoding="utf-8"))

pytestmark = pytest.mark.microvm


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "module" in metafunc.fixturenames:
        metafunc.parametrize("module", CASES["modules"] if metafunc.config.getoption("--soak") else CASES["short"])


@pytest.fixture(scope="module")
def folder() -> Path:
    """The tests of the CPython whose figures are recorded. CI has them; elsewhere they may be missing."""
    try:
        return cpython_suite.source(CASES["version"])
    except cpython_suite.NoTests as missing:
        if os.environ.get("CI"):
            pytest.fail(str(missing), pytrace=False)
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def roomy(folder: Path, slowness: float) -> Iterator[Sandbox]:
    """A sandbox with memory and time for a test suite."""
    del folder  # asked for first, so that no sandbox boots where the tests are missing
    limits = cpython_suite.LIMITS
    with Sandbox(limits=replace(limits, seconds=limits.seconds * slowness)) as sandbox:
        yield sandbox


@pytest.mark.timeout(1200)
def test_as_many_tests_pass_as_are_recorded(roomy: Sandbox, folder: Path, module: str) -> None:
    outcome = cpython_suite.run(roomy, folder, module, CASES["modules"][module])
    failed = {why: name for name, why in outcome.not_passed.items() if why.startswith("failed")}
    hint = "if that is right, `make cpython-tests` records it. One test for each way to fail:"
    told = "\n".join([hint, *(f"{name}: {why}" for why, name in failed.items())])
    assert outcome.figures == CASES["modules"][module]["figures"], told
