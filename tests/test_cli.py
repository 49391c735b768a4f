"""The command line: options, exit codes, what a terminal and a log get."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from canned_runtime import host_call, outcome
from wcpod import cli as command_line
from wcpod.cli import cli
from wcpod.exceptions import HypervisorUnavailable
from wcpod.podcast.models.rehearsal import SAMPLE_PAGES
from wcpod.podcast.progress import CodeEnded, CodeStarted, HostCalled, SkillLoaded, StepEnded, StepStarted
from wcpod.podcast.terminal import LiveProgress, PlainProgress, describe, progress_on

WCPOD = [sys.executable, "-m", "wcpod"]


def invoke(*arguments: str, **options: Any) -> Any:
    return CliRunner().invoke(cli, list(arguments), prog_name="wcpod", **options)


@pytest.mark.parametrize("command", [(), ("run",), ("exec",), ("doctor",)])
def test_help_teaches_by_example(command: tuple[str, ...]) -> None:
    result = invoke(*command, "--help")
    assert result.exit_code == 0
    assert "wcpod run" in result.output if not command else "Example:" in result.output


@pytest.mark.parametrize("command", ["run", "exec"])
def test_help_documents_the_exit_codes(command: str) -> None:
    assert "Exit codes:" in invoke(command, "--help").output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "--date", "15.06.2026"), "'15.06.2026' does not match the format '%Y-%m-%d'"),
        (("run", "--model", "other"), "'other' is not one of 'rehearsal', 'foundry', 'openai'"),
        (
            ("run", "--limits", "second=3"),
            "'second=3' is not one of seconds=N, memory_mib=N, output_bytes=N, host_calls=N",
        ),
        (("run", "--archive", "/nonexistent"), "Directory '/nonexistent' does not exist"),
        (("exec", "--timeout", "0", "-"), "0.0 is not in the range x>0"),
        (("exec", "/nonexistent.py"), "No such file or directory"),
    ],
)
def test_wrong_options(arguments: tuple[str, ...], message: str) -> None:
    result = invoke(*arguments)
    assert result.exit_code == command_line.USAGE
    assert message in " ".join(result.output.split())


def test_source_that_is_not_utf8() -> None:
    result = invoke("exec", "-", input=b"print('\xff')")
    assert result.exit_code == command_line.USAGE
    assert "the file is not UTF-8: byte 7" in result.output


def test_a_model_that_is_not_configured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("agent_framework_openai", reason="the extra 'openai' is not installed")
    for variable in ("OPENAI_API_KEY", "OPENAI_MODEL", "OPENAI_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    result = invoke("run", "--model", "openai", "--out", str(tmp_path))
    assert result.exit_code == command_line.NOT_CONFIGURED
    assert "wcpod: the model openai is not configured: set OPENAI_MODEL" in result.output


def test_a_missing_skill(tmp_path: Path) -> None:
    result = invoke("run", "--skills", str(tmp_path), "--out", str(tmp_path / "out"))
    assert result.exit_code == command_line.NOT_CONFIGURED
    assert "write-script/SKILL.md: No such file or directory" in result.output
    assert not (tmp_path / "out").exists()


def test_no_hypervisor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def missing(**_options: Any) -> Any:
        raise HypervisorUnavailable("/dev/kvm does not exist")

    monkeypatch.setattr("wcpod.HyperlightRuntime", missing)
    result = invoke("run", "--out", str(tmp_path))
    assert result.exit_code == command_line.NO_SANDBOX
    assert "wcpod: /dev/kvm does not exist\nTo check this machine: wcpod doctor" in result.output
    assert list(tmp_path.iterdir()) == []


def test_the_day_exists(tmp_path: Path) -> None:
    (tmp_path / "260615").mkdir()
    kept = tmp_path / "260615" / "260615.simple.zh.txt"
    kept.write_text("kept")
    result = invoke("run", "--date", "2026-06-15", "--out", str(tmp_path))
    assert result.exit_code == command_line.DAY_EXISTS
    assert "holds an episode; a rehearsal does not replace it" in result.output
    assert kept.read_text() == "kept"


@pytest.mark.parametrize(
    ("result", "code"),
    [
        (outcome(), 0),
        (outcome(exit_code=0, kind="error"), 1),
        (outcome(exit_code=3, kind="error"), 3),
        (outcome(exit_code=256, kind="error"), 1),
        (outcome(kind="timeout"), 124),
        (outcome(kind="memory"), 1),
    ],
)
def test_exit_codes_of_exec(result: Any, code: int) -> None:
    assert command_line._exit_code(result) == code


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


EVENTS = [
    StepStarted("SearchAgent"),
    SkillLoaded("SearchAgent", "search-worldcup"),
    CodeStarted("SearchAgent", "print('[red]')\n" + "pass\n" * 20),
    HostCalled("SearchAgent", host_call("blocked", reason="not allowed\x1b[2J\nsaved   fake")),
    CodeEnded("SearchAgent", "x", outcome(stderr="Traceback\nKeyError: '\x1b[31m'\n", kind="error")),
    StepEnded("SearchAgent", 1.25),
]


def test_what_an_event_says() -> None:
    assert [describe(event) for event in EVENTS] == [
        "start   SearchAgent",
        "skill   SearchAgent: search-worldcup",
        "",
        "fetch   SearchAgent: blocked https://www.bbc.com/sport/football/world-cup (not allowed\\x1b[2J saved   fake)",
        "code    SearchAgent: error in 10 ms: KeyError: '\\x1b[31m'",
        "done    SearchAgent (1.2 s)",
    ]


def test_a_log_gets_plain_lines() -> None:
    stream = io.StringIO()
    with progress_on(stream, rehearsal=True) as listener:
        for event in EVENTS:
            listener(event)
    assert isinstance(listener, PlainProgress)
    lines = stream.getvalue().splitlines()
    assert lines[0].startswith("REHEARSAL: ")
    assert len(lines) == 6
    assert "\x1b" not in stream.getvalue()


def test_a_terminal_gets_the_code_and_no_foreign_escape_codes() -> None:
    stream = Terminal()
    steps: list[str] = []
    live = LiveProgress(Console(file=stream, width=100, color_system=None, force_terminal=True), steps.append)
    for event in EVENTS:
        live(event)
    assert steps == ["SearchAgent …"]
    assert "    │ print('[red]')" in stream.getvalue()
    assert "… 9 more lines" in stream.getvalue()
    assert "\x1b[2J" not in stream.getvalue()
    assert "\x1b[31m" not in stream.getvalue()


def test_without_a_terminal_output_is_left_as_it_is(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    command_line._write(sys.stdout, "\x1b[31m\r\n世\ud800")
    assert capfdbinary.readouterr().out == b"\x1b[31m\r\n\xe4\xb8\x96\\ud800"


def test_import_is_light() -> None:
    heavy = ("agent_framework", "rich", "opencc", "openai")
    program = f"import sys, wcpod, wcpod.cli\nprint([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.microvm
def test_run_twice_in_a_log(tmp_path: Path) -> None:
    command = [*WCPOD, "run", "--date", "2026-06-15", "--out", "out"]
    for _ in range(2):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("REHEARSAL: ")
        assert done.stdout.splitlines()[-3:] == [
            "out/260615/260615.simple.zh.txt",
            "out/260615/260615.tranditional.zh.txt",
            "out/260615/episode.json",
        ]
    assert sorted(path.name for path in (tmp_path / "out" / "260615").iterdir()) == [
        "260615.simple.zh.txt",
        "260615.tranditional.zh.txt",
        "episode.json",
    ]


@pytest.mark.microvm
def test_exec_passes_output_and_exit_code_on() -> None:
    program = b"import sys\nprint('\\x1b[31m', '\xe4\xb8\x96')\nprint('err', file=sys.stderr)\nsys.exit(7)\n"
    done = subprocess.run([*WCPOD, "exec", "-"], input=program, capture_output=True, check=False)
    assert done.returncode == 7
    assert done.stdout == b"\x1b[31m \xe4\xb8\x96\n"
    assert done.stderr.startswith(b"err\n")


@pytest.mark.microvm
def test_exec_neutralises_escape_codes_on_a_terminal() -> None:
    controller, terminal = pty.openpty()
    subprocess.run(
        [*WCPOD, "exec", "-"], input=b"print('\\x1b[2J')", stdout=terminal, stderr=subprocess.PIPE, check=True
    )
    os.close(terminal)
    assert os.read(controller, 1000) == b"\\x1b[2J\r\n"
    os.close(controller)


@pytest.mark.microvm
def test_exec_json() -> None:
    done = subprocess.run([*WCPOD, "exec", "--json", "-"], input=b"print(1)\n6 * 7", capture_output=True, check=False)
    result = json.loads(done.stdout)
    assert {key: result[key] for key in ("kind", "ok", "exit_code", "stdout", "value")} == {
        "kind": "ok",
        "ok": True,
        "exit_code": 0,
        "stdout": "1\n",
        "value": "42",
    }


@pytest.mark.microvm
@pytest.mark.parametrize(
    ("options", "code", "stdout", "stderr"),
    [
        ([], 1, b"", b"this sandbox has no network"),
        (["--allow-host", "www.bbc.co.uk"], 0, b"blocked\n", b""),
        (["--allow-host", "www.bbc.com"], 0, b"ok\n", b""),
    ],
)
def test_exec_has_no_network_unless_told(options: list[str], code: int, stdout: bytes, stderr: bytes) -> None:
    program = b"print(call_tool('fetch_url', url='https://www.bbc.com/sport/football/world-cup')['STATUS'])"
    command = [*WCPOD, "exec", "--archive", str(SAMPLE_PAGES), *options, "-"]
    done = subprocess.run(command, input=program, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (code, stdout)
    assert stderr in done.stderr


@pytest.mark.microvm
def test_exec_stops_at_its_time_limit() -> None:
    program = b"print('before', flush=True)\nwhile True: pass"
    done = subprocess.run([*WCPOD, "exec", "--timeout", "1", "-"], input=program, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (124, b"before\n")
    assert b"wcpod: the run ended by timeout" in done.stderr
