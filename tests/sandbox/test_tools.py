"""Tools of the host, and the bounds between them and the guest."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Callable
from typing import Any, Literal

import pytest

from wcpod import HostCall, Limits, Sandbox
from wcpod.sandbox.tools import ToolTable, fits

WHO: contextvars.ContextVar[str] = contextvars.ContextVar("WHO", default="nobody")


def add(a: int, b: int = 1) -> int:
    return a + b


async def wait(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "waited"


def fail(kind: str) -> None:
    raise {"value": ValueError, "key": KeyError, "own": OwnError}[kind]("the text")


class OwnError(Exception):
    pass


TOOLS: dict[str, Callable[..., Any]] = {
    "add": add,
    "wait": wait,
    "fail": fail,
    "who": lambda: WHO.get(),
    "deep": lambda: __import__("functools").reduce(lambda inner, _: [inner], range(100), 0),
    "large": lambda: "x" * (2 << 20),
    "odd": lambda: object(),
    "slow": lambda: time.sleep(30),
}


@pytest.fixture(scope="module")
def box(slowness: float) -> Any:
    with Sandbox(tools=TOOLS, limits=Limits(seconds=10 * slowness, host_calls=5)) as made:
        yield made


def raised(box: Sandbox, call: str, **arguments: Any) -> str:
    code = f"try:\n    print({call})\nexcept Exception as error:\n    print(type(error).__name__, error)"
    result = box.run(code, **arguments)
    assert result.ok, result.stderr
    return result.stdout


@pytest.mark.microvm
def test_sync_and_async_tools(box: Sandbox) -> None:
    assert raised(box, "call_tool('add', a=1, b=2), call_tool('add', a=1)") == "3 2\n"
    assert raised(box, "call_tool('wait', seconds=0.01)") == "waited\n"


@pytest.mark.microvm
def test_a_tool_sees_the_context_of_whoever_started_the_run(box: Sandbox) -> None:
    token = WHO.set("me")
    assert raised(box, "call_tool('who')") == "me\n"
    WHO.reset(token)


@pytest.mark.microvm
def test_a_mismatch_is_named(box: Sandbox) -> None:
    assert raised(box, "call_tool('add', a='1')") == "TypeError add(): a must be int, not str\n"
    assert raised(box, "call_tool('add', a=True)") == "TypeError add(): a must be int, not bool\n"
    assert "missing a required argument: 'a'" in raised(box, "call_tool('add')")
    assert "unexpected keyword argument 'c'" in raised(box, "call_tool('add', a=1, c=2)")


@pytest.mark.microvm
def test_exceptions_keep_their_type_name_and_text(box: Sandbox) -> None:
    assert raised(box, "call_tool('fail', kind='value')") == "ValueError the text\n"
    assert raised(box, "call_tool('fail', kind='key')").startswith("KeyError")
    assert "OwnError" in raised(box, "call_tool('fail', kind='own')")


@pytest.mark.microvm
def test_an_unknown_tool_names_those_that_there_are(box: Sandbox) -> None:
    assert "add" in raised(box, "call_tool('nothing')")


@pytest.mark.microvm
def test_results_are_bounded_and_plain(box: Sandbox) -> None:
    assert "nested deeper than 64 levels" in raised(box, "call_tool('deep')")
    assert "the reply is too long" in raised(box, "call_tool('large')")
    assert "cannot cross to the guest" in raised(box, "call_tool('odd')")


@pytest.mark.microvm
def test_calls_over_the_limit_are_refused(box: Sandbox) -> None:
    result = box.run("for n in range(7):\n    try: print(call_tool('add', a=n))\n    except Exception as e: print(e)")
    assert result.stdout.count("used up its 5 host calls") == 2
    assert [(call.status, call.count) for call in result.host_calls] == [("ok", 1)] * 5 + [("error", 2)]


@pytest.mark.microvm
def test_a_slow_tool_does_not_hold_up_the_limit(box: Sandbox, slowness: float) -> None:
    result = box.run("print('before')\ncall_tool('slow')", limits=Limits(seconds=0.4 * slowness))
    assert (result.kind, result.stdout) == ("timeout", "before\n")
    assert result.usage.seconds < 0.9 * slowness
    assert [call.status for call in result.host_calls] == ["timeout"]


@pytest.mark.microvm
def test_an_exception_of_on_call_comes_back_after_the_run(box: Sandbox) -> None:
    def refuse(call: HostCall) -> None:
        raise OwnError(call.name)

    with pytest.raises(OwnError, match="add"):
        box.run("call_tool('add', a=1)", on_call=refuse)
    assert box.run("print('ok')").stdout == "ok\n"


def test_names_are_checked() -> None:
    with pytest.raises(ValueError, match="'fetch_url' is taken"):
        ToolTable({"fetch_url": add})
    with pytest.raises(ValueError, match="'a b' is not an identifier"):
        ToolTable({"a b": add})


@pytest.mark.parametrize(
    ("value", "hint", "right"),
    [
        (1, int, True),
        (True, int, False),
        (1, float, True),
        ("x", str | None, True),
        (None, str | None, True),
        (1, str | None, False),
        (["a"], list[str], True),
        ([1], list[str], False),
        ("x", list[str], False),
        ({"a": 1}, dict[str, int], True),
        ({"a": "b"}, dict[str, int], False),
        ([1], dict, False),
        ("a", Literal["a", "b"], True),
        ("c", Literal["a", "b"], False),
        (object, Any, True),
    ],
)
def test_annotations(value: Any, hint: Any, right: bool) -> None:
    assert fits(value, hint) is right
