"""The host against a guest that was taken over: it answers in time, in bounded memory, and the next run is right.

The image is the ordinary one with `guest/runtime/src/hostile.rs` inside, which obeys commands.
`make hostile` builds it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from wcpod import FetchPolicy, Limits, Sandbox
from wcpod.exceptions import SnapshotError
from wcpod.sandbox.image import VARIABLE

pytestmark = pytest.mark.microvm

IMAGE = Path(__file__).resolve().parents[2] / "guest" / "build" / "hostile-guest.bin"
SECONDS = 2.0


def resident_mib() -> int:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) // 1024


@pytest.fixture(scope="module")
def hostile(slowness: float) -> Iterator[Sandbox]:
    """A sandbox whose guest does what it is told."""
    assert IMAGE.exists(), f"{IMAGE} is missing: build it with `make hostile`"
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(VARIABLE, str(IMAGE))
        limits = Limits(seconds=SECONDS * slowness, host_calls=5)
        policy = FetchPolicy(["www.example.org"])
        with Sandbox(limits=limits, tools={"ping": lambda: "pong"}, policy=policy, cache=False) as made:
            yield made


def act(sandbox: Sandbox, command: str, slowness: float, **options: Any) -> Any:
    """The result of a command. In time, in bounded memory, with a short detail; and the next run is right."""
    before = resident_mib()
    begin = time.monotonic()
    result = sandbox.run(f"#hostile: {command}", **options)
    took = time.monotonic() - begin
    assert took < (SECONDS + 0.5) * slowness, took
    assert resident_mib() - before < 64
    assert len(result.detail or "") < 2100
    assert len(result.host_calls) <= 5 + 3
    assert sandbox.run("print('right')").stdout == "right\n"
    return result


@pytest.mark.parametrize("kind", ["string", "int", "void", "bytes", "error"])
def test_an_answer_of_the_wrong_type_is_a_crash(hostile: Sandbox, slowness: float, kind: str) -> None:
    result = act(hostile, f"answer {kind}", slowness)
    assert (result.kind, result.exit_code) == ("crash", 1)
    assert result.detail


def test_an_outcome_of_any_length_is_a_verdict(hostile: Sandbox, slowness: float) -> None:
    assert act(hostile, "answer huge", slowness).kind == "crash"


@pytest.mark.parametrize("command", ["print FORGED", "print-loop FORGED"])
def test_the_host_function_that_hyperlight_adds_prints_nothing_and_ends_the_run(
    hostile: Sandbox, slowness: float, capfd: pytest.CaptureFixture[str], command: str
) -> None:
    result = act(hostile, command, slowness)
    assert result.kind == "crash"
    assert result.detail.startswith("the guest called a function that is not for it")
    assert capfd.readouterr().out == ""


def test_the_debug_port_does_not_reach_standard_output(hostile: Sandbox, slowness: float, capfd: Any) -> None:
    act(hostile, "debug FORGED", slowness)
    assert "FORGED" not in capfd.readouterr().out


@pytest.mark.parametrize("command", ["flood-tools 60000", "flood-fetches"])
def test_a_flood_of_host_calls_is_ended_and_counted(hostile: Sandbox, slowness: float, command: str) -> None:
    result = act(hostile, command, slowness)
    assert result.kind == "crash"
    assert result.detail.startswith("the run went on calling host functions long after its limit of host calls")
    assert sum(call.count for call in result.host_calls) >= 1000
    assert all(len(call.name) < 300 and len(call.reason or "") < 300 for call in result.host_calls)


@pytest.mark.parametrize("command", ["sleep-loop", "endless-output"])
def test_what_does_not_end_times_out(hostile: Sandbox, slowness: float, command: str) -> None:
    assert act(hostile, command, slowness).kind == "timeout"


def test_output_that_grows_for_ever_is_not_handed_on_for_ever(hostile: Sandbox, slowness: float) -> None:
    handed = 0

    def count(_: str, text: str) -> None:
        nonlocal handed
        handed += len(text)

    result = act(hostile, "ever-more-output", slowness, on_output=count, limits=Limits(seconds=SECONDS * slowness))
    assert result.kind in ("output", "timeout")
    assert handed < 4 * 1024 * Limits().output_bytes + (4 << 20)


@pytest.mark.parametrize(
    "command", ["unknown-function", "wrong-arguments", "wrong-result", "halt", "port 4242", "abort \x1b[31mred"]
)
def test_odd_calls_end_the_run_or_fail_in_the_guest(hostile: Sandbox, slowness: float, command: str) -> None:
    assert act(hostile, command, slowness).kind in ("ok", "error", "crash")


def test_tables_without_end_are_not_followed(hostile: Sandbox, slowness: float) -> None:
    hostile.run("#hostile: endless-tables")
    begin = time.monotonic()
    with pytest.raises(SnapshotError, match="page tables that no guest of ours leaves"):
        hostile.snapshot(of_last_run=True)
    assert time.monotonic() - begin < 2 * slowness
    assert hostile.run("print('right')").stdout == "right\n"


def test_a_protocol_on_standard_output_is_out_of_reach() -> None:
    """As `wcpod mcp` speaks one: whatever the guest does, standard output holds only what the host wrote."""
    code = (
        "from wcpod import Limits, Sandbox\n"
        "with Sandbox(cache=False, limits=Limits(seconds=5)) as made:\n"
        "    for command in ('print FORGED', 'debug FORGED', 'abort FORGED'):\n"
        "        made.run(f'#hostile: {command}')\n"
        "print('honest')"
    )
    environment = {**os.environ, VARIABLE: str(IMAGE)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert done.stdout == "honest\n"


def test_the_host_functions_are_exactly_ours(sandbox: Sandbox, tmp_path: Path) -> None:
    """A saved state lists them: a sandbox that is made of it must have the same."""
    sandbox.snapshot().save(tmp_path / "state")
    texts = [path.read_bytes() for path in (tmp_path / "state" / "blobs" / "sha256").iterdir()]
    (config,) = [json.loads(text) for text in texts if len(text) < 1 << 20 and b'"host_functions"' in text]
    names = {function["function_name"] for function in config["host_functions"]}
    assert names == {"FetchUrl", "CallTool", "Sleep", "HostPrint"}  # the last is Hyperlight's, replaced by one of ours
