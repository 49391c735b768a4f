"""Options that cannot be meant are refused by name, before anything is made or run."""

from __future__ import annotations

import logging
import math
import sys
from typing import Any

import pytest

from wcpod import FetchLimits, Limits, Sandbox, SandboxPool


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limits": {}}, "limits must be a Limits, not dict"),
        ({"limits": 5}, "limits must be a Limits, not int"),
        ({"policy": "www.example.org"}, "policy must be a FetchPolicy, not str"),
        ({"fetch_limits": {}}, "fetch_limits must be a FetchLimits, not dict"),
        ({"archive": 5}, "archive must be a str or PathLike, not int"),
        ({"record": []}, "record must be a str or PathLike, not list"),
        ({"audit": b"audit.jsonl"}, "audit must be a str or PathLike, not bytes"),
        ({"contact": 5}, "contact must be a str, not int"),
        ({"snapshot": "folder"}, "snapshot must be a Snapshot, not str"),
        ({"cache": None}, "cache must be a bool, not NoneType"),
        (
            {"tools": "print"},
            "tools must be a list of functions, or a dict of them by name, not str",
        ),
    ],
)
def test_a_sandbox_refuses_an_option_of_another_type(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError) as refused:
        Sandbox(**options)
    assert str(refused.value) == message


@pytest.mark.microvm
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"inputs": ["a"]}, TypeError, "inputs must be a Mapping, not list"),
        ({"inputs": []}, TypeError, "inputs must be a Mapping, not list"),
        ({"inputs": {1: b""}}, TypeError, "the name of an input must be a str, not int"),
        ({"limits": {}}, TypeError, "limits must be a Limits, not dict"),
        ({"on_call": 5}, TypeError, "on_call must be a function, not int"),
        ({"on_output": "print"}, TypeError, "on_output must be a function, not str"),
        ({"wait": "5"}, TypeError, "wait must be a number, not str"),
        ({"wait": -1}, ValueError, "wait must be 0 or more seconds, not -1"),
        ({"wait": math.nan}, ValueError, "wait must be 0 or more seconds, not nan"),
        (
            {"inputs": {"\udcff": b""}},
            ValueError,
            "the name of the input '\\udcff' holds half of a surrogate pair, which is not text",
        ),
        (
            {"inputs": {"x" * 256: b""}},
            ValueError,
            f'the input name "{"x" * 100}…" cannot be used: a part of it has more than 255 bytes',
        ),
        ({"inputs": {"a/b": b"", "a": b""}}, ValueError, 'the input name "a/b" cannot be used: "a" is a file'),
    ],
)
def test_a_run_refuses_an_option_that_cannot_be_meant(
    sandbox: Sandbox, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as refused:
        sandbox.run("1", **options)
    assert str(refused.value) == message


@pytest.mark.microvm
def test_another_base_is_a_snapshot(sandbox: Sandbox) -> None:
    wrong: Any = "folder"
    with pytest.raises(TypeError, match=r"^snapshot must be a Snapshot, not str$"):
        sandbox.restore(wrong)


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (Limits, {"seconds": "5"}, "Limits.seconds must be a number, not str"),
        (Limits, {"memory_mib": 64.5}, "Limits.memory_mib must be an int, not float"),
        (Limits, {"output_bytes": 1.5}, "Limits.output_bytes must be an int, not float"),
        (Limits, {"host_calls": math.inf}, "Limits.host_calls must be an int, not float"),
        (FetchLimits, {"page_bytes": "2M"}, "FetchLimits.page_bytes must be an int, not str"),
        (FetchLimits, {"pause_seconds": None}, "FetchLimits.pause_seconds must be a number, not NoneType"),
    ],
)
def test_limits_are_numbers(kind: type[Limits | FetchLimits], values: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError) as refused:
        kind(**values)
    assert str(refused.value) == message


@pytest.mark.microvm
@pytest.mark.parametrize("calls", [sys.maxsize, 2**90])
def test_a_limit_of_host_calls_may_be_as_large_as_any_number(sandbox: Sandbox, calls: int) -> None:
    assert sandbox.run("print(1)", limits=Limits(host_calls=calls)).stdout == "1\n"


def test_a_pool_has_a_whole_number_of_sandboxes() -> None:
    wrong: Any = 2.5
    with pytest.raises(TypeError, match=r"^size must be an int, not float$"):
        SandboxPool(wrong)


def test_nothing_is_logged_to_the_console_by_itself() -> None:
    assert [type(handler) for handler in logging.getLogger("wcpod").handlers] == [logging.NullHandler]
