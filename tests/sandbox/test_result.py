"""A result as an object: as a truth value, as text, as HTML, as JSON and back."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from canned_runtime import host_call, outcome
from wcpod import ExecutionResult, Sandbox, Truncated
from wcpod.sandbox.options import Input


def test_it_is_true_when_the_code_ended_well() -> None:
    assert outcome()
    assert not outcome(kind="error")
    assert not outcome(kind="timeout")


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (outcome("1\n"), r"<ExecutionResult: ok, exit code 0, 0.010 s, stdout='1\n'>"),
        (
            outcome(stderr="E", kind="error", value="3", detail="d"),
            "<ExecutionResult: error, exit code 1, 0.010 s, stderr='E', value='3', detail='d'>",
        ),
        (
            outcome(files={"a": b"xyz"}, host_calls=(host_call(), dataclasses.replace(host_call(), count=4))),
            "<ExecutionResult: ok, exit code 0, 0.010 s, files={'a': '3 bytes'}, host_calls=5>",
        ),
        (outcome(truncated=Truncated(9, 1, 0, 0)), "<ExecutionResult: ok, exit code 0, 0.010 s, truncated>"),
    ],
)
def test_its_repr_says_what_one_wants_to_know(result: ExecutionResult, text: str) -> None:
    assert repr(result) == text


def test_its_repr_is_short() -> None:
    result = outcome("a" + "x" * 100_000 + "z", files={f"{n:05}": b"" for n in range(10_000)})
    assert len(repr(result)) < 1000
    assert "stdout='axx" in repr(result)
    assert "xz'" in repr(result)


def test_a_notebook_shows_it_without_running_what_the_code_made() -> None:
    hostile = "<script>alert(1)</script>\x1b[2J"
    files = {"p.png": b"PNG", 'x"><script>.txt': b"x", "big.png": b"x" * (1 << 20) + b"x"}
    shown = outcome(hostile, hostile, kind="error", value=hostile, detail=hostile, files=files)._repr_html_()
    assert "<script" not in shown
    assert "\x1b" not in shown
    assert shown.count("&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[2J") == 4
    assert '<img src="data:image/png;base64,UE5H"><figcaption>/output/p.png (3 bytes)</figcaption>' in shown
    assert "<p>/output/big.png (1048577 bytes)</p>" in shown


def test_a_notebook_shows_so_much() -> None:
    shown = outcome("x" * 1_000_000, files={f"{n:03}": b"" for n in range(25)})._repr_html_()
    assert len(shown) < 25_000
    assert "<p>and 5 more files</p>" in shown


RESULTS = [
    outcome("1\n", files={"a": b"\x00\xff", "b/c": b""}, value="3"),
    outcome(kind="crash", detail="d", truncated=Truncated(9, 1, 0, 0)),
    outcome(host_calls=(host_call("blocked", reason="r"), dataclasses.replace(host_call(), name="t", fetch=None))),
]


@pytest.mark.parametrize("result", RESULTS)
def test_it_comes_back_from_json(result: ExecutionResult) -> None:
    text = json.dumps(result.to_dict(), allow_nan=False)
    assert ExecutionResult.from_dict(json.loads(text)) == result


@pytest.mark.parametrize(
    "change",
    [
        {"files": {"a": "no base64"}},
        {"files": None},
        {"host_calls": [{}]},
        {"usage": {"seconds": 1}},
        {"isolation": None},
        {"more": 1},
    ],
)
def test_fields_of_no_result_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="these are not the fields of a result: "):
        ExecutionResult.from_dict({**outcome().to_dict(), **change})
    with pytest.raises(ValueError, match="these are not the fields of a result: "):
        ExecutionResult.from_dict({})


@pytest.mark.microvm
def test_a_real_result_comes_back_from_json(sandbox: Sandbox) -> None:
    result = sandbox.run("open('/output/a', 'w').write('x'); print('\\ud800é')")
    assert ExecutionResult.from_dict(json.loads(json.dumps(result.to_dict()))) == result


@pytest.mark.microvm
def test_inputs_are_text_bytes_or_files(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "c.txt").write_bytes(b"\xff")
    inputs: dict[str, Input] = {"a": "é", "b": b"b", "sub/c": tmp_path / "c.txt", "d": memoryview(b"d")}
    code = "for name in ('a', 'b', 'sub/c', 'd'): print(open(f'/input/{name}', 'rb').read())"
    assert sandbox.run(code, inputs=inputs).stdout == "b'\\xc3\\xa9'\nb'b'\nb'\\xff'\nb'd'\n"


@pytest.mark.microvm
def test_what_is_no_input_is_refused(sandbox: Sandbox, tmp_path: Path) -> None:
    wrong: Any = {"a": 3}
    with pytest.raises(TypeError, match="the input 'a' must be a str, bytes or a Path, not int"):
        sandbox.run("", inputs=wrong)
    with pytest.raises(ValueError, match="the input 'a' holds half of a surrogate pair, which is not text"):
        sandbox.run("", inputs={"a": "\ud800"})
    with pytest.raises(FileNotFoundError):
        sandbox.run("", inputs={"a": tmp_path / "none"})
    with pytest.raises(ValueError, match="is no plain file"):
        sandbox.run("", inputs={"a": Path("/dev/zero")})
    with pytest.raises(ValueError, match="is no plain file"):
        sandbox.run("", inputs={"a": tmp_path})
    (tmp_path / "large").write_bytes(b"x" * ((3 << 20) + 1))
    with pytest.raises(ValueError, match="the inputs are larger than the 3145728 bytes that a run may be given"):
        sandbox.run("", inputs={"a": tmp_path / "large"})
