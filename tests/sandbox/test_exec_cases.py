"""Code as models send it, with what must become of it: tests/cases/exec.json.

Each case is `[name, code, expect]`. Keys of `expect`: `kind` (or several, with `|`), `exit_code`, `stdout`, `value`,
`stdout_has`, `stdout_starts`, `stdout_ends`, `stderr_has`, `not_has` (in neither stream), `stdout_bytes` (what was
printed before it was cut), `files` (all of them, as text), `detail_has`, `within_s`, `next_ok` (the run after it is
right), `then` (the case that is run after it), `words_differ` (between two runs) and `host_time_within_s` (what is
printed, from the host's clock).
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from wcpod import ExecutionResult, FetchPolicy, Limits, Sandbox

CASES = json.loads((Path(__file__).parent.parent / "cases" / "exec.json").read_text(encoding="utf-8"))
PAGES = Path(__file__).parent.parent / "pages"
SECONDS = 5.0
KEYS = {
    *("kind", "exit_code", "stdout", "value", "stdout_has", "stdout_starts", "stdout_ends", "stderr_has", "not_has"),
    *("stdout_bytes", "files", "detail_has", "within_s", "next_ok", "then", "words_differ", "host_time_within_s"),
}

pytestmark = pytest.mark.microvm


@pytest.fixture(scope="module")
def box(slowness: float) -> Any:
    with Sandbox(limits=Limits(seconds=SECONDS * slowness), policy=FetchPolicy.bbc(), archive=PAGES) as made:
        yield made


def test_every_key_is_one_that_is_checked() -> None:
    assert {key for _, _, expect in CASES for key in expect} == KEYS


@pytest.mark.parametrize(("code", "expect"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_case(box: Sandbox, slowness: float, code: str, expect: dict[str, Any]) -> None:
    # What only its limit ends gets a shorter one.
    seconds = (1.0 if "timeout" in expect.get("kind", "") else SECONDS) * slowness
    begin = time.monotonic()
    result = box.run(code, limits=Limits(seconds=seconds))
    took = time.monotonic() - begin
    check(result, expect, took, seconds, slowness)
    if "words_differ" in expect:
        words = zip(result.stdout.split(), box.run(code).stdout.split(), strict=True)
        assert [first for first, second in words if first == second] == []
    if "then" in expect:
        after, right = next(case[1:] for case in CASES if case[0] == expect["then"])
        check(box.run(after), right, 0, seconds, slowness)
    if "next_ok" in expect:
        following = box.run("print('ok')")
        assert (following.kind, following.stdout) == ("ok", "ok\n")


def check(result: ExecutionResult, expect: dict[str, Any], took: float, limit: float, slowness: float) -> None:
    """What one result must be, whatever ran before and after it."""
    if "kind" in expect:
        assert result.kind in expect["kind"].split("|"), result
    for field in ("exit_code", "stdout", "value"):
        if field in expect:
            assert getattr(result, field) == expect[field], result
    for text in expect.get("stdout_has", []):
        assert text in result.stdout, result
    for text in expect.get("stderr_has", []):
        assert text in result.stderr, result
    for text in expect.get("not_has", []):
        assert text not in result.stdout + result.stderr, result
    assert result.stdout.startswith(expect.get("stdout_starts", ""))
    assert result.stdout.endswith(expect.get("stdout_ends", ""))
    cut = result.truncated.stdout_bytes if result.truncated else None
    assert cut == expect.get("stdout_bytes"), result
    if "files" in expect:
        assert {name: data.decode() for name, data in result.files.items()} == expect["files"], result
    assert expect.get("detail_has", "") in (result.detail or ""), result
    if "host_time_within_s" in expect:
        assert abs(float(result.stdout) - time.time()) <= expect["host_time_within_s"] * slowness
    if "within_s" in expect:
        within = str(expect["within_s"])
        most = limit * within.startswith("limit") + float(within.removeprefix("limit+")) * slowness
        assert took <= most, result
