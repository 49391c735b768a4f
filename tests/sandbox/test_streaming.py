"""Output while the code runs, and the states of a sandbox."""

from __future__ import annotations

import time

import pytest

from wcpod import Limits, Sandbox

pytestmark = pytest.mark.microvm


def test_text_comes_while_the_code_runs(sandbox: Sandbox) -> None:
    seen: list[tuple[str, str, float]] = []
    code = "import sys, time\nprint('一', end='')\ntime.sleep(0.5)\nprint('two', file=sys.stderr)"
    result = sandbox.run(code, on_output=lambda stream, text: seen.append((stream, text, time.monotonic())))
    assert [(stream, text) for stream, text, _ in seen] == [("stdout", "一"), ("stderr", "two\n")]
    assert seen[1][2] - seen[0][2] > 0.2
    assert (result.stdout, result.stderr) == ("一", "two\n")


def test_a_killed_run_is_streamed_to_its_last_character(sandbox: Sandbox, slowness: float) -> None:
    parts: list[str] = []
    code = "for n in range(1000): print(n)\nwhile True: pass"
    result = sandbox.run(code, limits=Limits(seconds=0.5 * slowness), on_output=lambda _, text: parts.append(text))
    assert result.kind == "timeout"
    assert "".join(parts) == result.stdout == "".join(f"{n}\n" for n in range(1000))


def test_an_exception_of_on_output_comes_back_after_the_run(sandbox: Sandbox) -> None:
    def refuse(stream: str, text: str) -> None:
        raise ValueError(f"{stream} {text!r}")

    with pytest.raises(ValueError, match="stdout 'x"):
        sandbox.run("print('x')", on_output=refuse)
    assert sandbox.run("print('ok')").stdout == "ok\n"


def test_states() -> None:
    made = Sandbox()
    states: list[str] = [made.state]
    made.run("print(1)", on_output=lambda _, __: states.append(made.state))
    states.append(made.state)
    made.close()
    states.append(made.state)
    assert list(dict.fromkeys(states)) == ["created", "running", "finished", "destroyed"]
    assert states.count("created") == states.count("finished") == 1
