"""Generated code, arguments and tool values thrown at a sandbox: always a typed result, and the next run is right."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wcpod import Limits, Sandbox

pytestmark = pytest.mark.microvm

RECEIVED: list[Any] = []
SENT: list[Any] = [None]
SETTINGS = settings(max_examples=60, deadline=None)

WORDS = (
    'x y 1 0 -1 1e308 \'a\' """ ( ) [ ] { } : , . = == + * ** // % @ & | ^ ~ < > lambda def class if else for in while '
    "try except finally raise return yield async await with as import from not and or is None True print len repr eval "
    "exec open del global \\ # 世 9**9 __import__ call_tool sys exit os"
)
TOKENS = st.sampled_from([*WORDS.split(" "), "\n", "\t", "\x00", "\ud800", "\u202e", "\x1b[2J"])
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@pytest.fixture(scope="module")
def box(slowness: float) -> Iterator[Sandbox]:
    def take(value: Any) -> Any:
        RECEIVED.append(value)
        return SENT[0]

    with Sandbox(limits=Limits(seconds=2 * slowness, memory_mib=64), tools={"take": take}) as made:
        yield made


@SETTINGS
@given(st.text() | st.lists(TOKENS, max_size=30).map(" ".join) | st.lists(TOKENS, max_size=30).map("".join))
def test_any_code_has_a_typed_result(box: Sandbox, code: str) -> None:
    result = box.run(code)
    assert result.kind in ("ok", "error", "timeout", "memory", "output", "crash")
    assert box.run("print('ok')").stdout == "ok\n"


@SETTINGS
@given(JSON, JSON)
def test_values_cross_unchanged_both_ways(box: Sandbox, there: Any, back: Any) -> None:
    RECEIVED.clear()
    SENT[0] = back
    code = f"import json\nvalue = json.loads({json.dumps(there)!r})\nprint(json.dumps(call_tool('take', value=value)))"
    result = box.run(code)
    assert result.ok, result.stderr
    assert [there] == RECEIVED
    assert json.loads(result.stdout) == back


@SETTINGS
@given(st.text())
def test_text_is_printed_as_it_is(box: Sandbox, text: str) -> None:
    assert box.run(f"print({text!r}, end='')").stdout == text
