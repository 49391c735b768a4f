"""Threads of a guest that has one: they run where they are started, are somebody, and never stop the interpreter.

The programs are in tests/cases/threads.json: those that would wait for ever, and those that work, with what they print.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wcpod import Limits, Sandbox

pytestmark = pytest.mark.microvm

CASES = json.loads((Path(__file__).parent.parent / "cases" / "threads.json").read_text(encoding="utf-8"))
FOR_EVER = "RuntimeError: would wait for ever: this sandbox has one thread"


@pytest.mark.parametrize("code", [pytest.param(code, id=name) for name, code in CASES["wait for ever"].items()])
def test_what_would_wait_for_ever_says_so(sandbox: Sandbox, code: str) -> None:
    result = sandbox.run(code)
    assert (result.kind, result.exit_code) == ("error", 1), result
    assert result.stderr.splitlines()[-1] == FOR_EVER
    assert "wasm" not in result.stderr
    assert sandbox.run("print('ok')").stdout == "ok\n"


@pytest.mark.parametrize(("code", "printed"), [pytest.param(*case, id=name) for name, case in CASES["work"].items()])
def test_what_works(sandbox: Sandbox, code: str, printed: str) -> None:
    result = sandbox.run(code)
    assert (result.kind, result.stdout) == ("ok", printed + "\n"), result


def test_a_wait_with_a_limit_longer_than_the_runs(sandbox: Sandbox, slowness: float) -> None:
    code = "import threading\nlock = threading.Lock(); lock.acquire(); lock.acquire(timeout=60)"
    assert sandbox.run(code, limits=Limits(seconds=0.5 * slowness)).kind == "timeout"
