"""The command line: options, exit codes, what a terminal and a log get."""

from __future__ import annotations

import datetime as dt
import io
import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from canned_runtime import CannedRuntime, host_call, outcome
from wcpod.cli import cli, exit_codes
from wcpod.cli.exec import _exit_code, _write
from wcpod.cli.run import _today
from wcpod.exceptions import HypervisorUnavailable
from wcpod.podcast.models.rehearsal import SAMPLE_PAGES
from wcpod.podcast.progress import CodeEnded, CodeStarted, Event, HostCalled, SkillLoaded, StepEnded, StepStarted
from wcpod.podcast.terminal import LiveProgress, Now, PlainProgress, describe, progress_on

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
        (("run", "--date", "15.06.2026"), "'15.06.2026' is not a day such as 2026-06-15"),
        (("run", "--date", "2026-02-30"), "'2026-02-30' is not a day such as 2026-06-15"),
        (("run", "--date", "1999-12-31"), "1999-12-31 is not in the years 2000 to 2099"),
        (("report", "2126-06-15"), "2126-06-15 is not in the years 2000 to 2099"),
        (("run", "--length", "100", "50"), "the most (50) must be at least the fewest (100), and 1"),
        (("run", "--length", "0", "0"), "the most (0) must be at least the fewest (0), and 1"),
        (("run", "--archive", "."), ". is no archive: it has no index.jsonl. `wcpod run --record` makes one."),
        (("exec", "--archive", ".", "-"), ". is no archive: it has no index.jsonl."),
        (("run", "--model", "other"), "'other' is not one of 'rehearsal', 'foundry', 'openai'"),
        (
            ("run", "--limits", "second=3"),
            "'second=3' is not one of seconds=N, memory_mib=N, output_bytes=N, host_calls=N",
        ),
        (("run", "--archive", "ABSENT"), "Directory 'ABSENT' does not exist"),
        (("exec", "--contact", "a b", "-"), "the contact must be 1 to 200 visible ASCII characters"),
        (("mcp", "--contact", "ops)"), "the contact must be 1 to 200 visible ASCII characters"),
        (("exec", "--timeout", "0", "-"), "0.0 is not in the range x>0"),
        (("exec", "ABSENT"), "No such file or directory"),
    ],
)
def test_wrong_options(
    arguments: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing named `ABSENT` is."""
    monkeypatch.chdir(tmp_path)
    result = invoke(*arguments)
    assert result.exit_code == exit_codes.USAGE
    assert message in " ".join(result.output.split())


def test_source_that_is_not_utf8() -> None:
    result = invoke("exec", "-", input=b"print('\xff')")
    assert result.exit_code == exit_codes.USAGE
    assert "the file is not UTF-8: byte 7" in result.output


def test_a_model_that_is_not_configured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("agent_framework_openai", reason="the extra 'openai' is not installed")
    for variable in ("OPENAI_API_KEY", "OPENAI_MODEL", "OPENAI_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    result = invoke("run", "--model", "openai", "--out", str(tmp_path))
    assert result.exit_code == exit_codes.NOT_CONFIGURED
    assert "wcpod: the model openai is not configured: set OPENAI_MODEL" in result.output


def test_a_missing_skill(tmp_path: Path) -> None:
    result = invoke("run", "--skills", str(tmp_path), "--out", str(tmp_path / "out"))
    assert result.exit_code == exit_codes.NOT_CONFIGURED
    assert "write-script/SKILL.md: No such file or directory" in result.output
    assert not (tmp_path / "out").exists()


def test_no_hypervisor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def missing(**_options: Any) -> Any:
        raise HypervisorUnavailable("/dev/kvm does not exist")

    monkeypatch.setattr("wcpod.HyperlightRuntime", missing)
    result = invoke("run", "--out", str(tmp_path))
    assert result.exit_code == exit_codes.NO_SANDBOX
    assert "wcpod: /dev/kvm does not exist\nTo check this machine: wcpod doctor" in result.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "sandbox"),
    [
        (("run", "--out"), "wcpod.HyperlightRuntime"),
        (("exec", "--allow-host", "www.bbc.com", "-"), "wcpod.AsyncSandbox"),
    ],
)
def test_the_contact_reaches_the_sandbox(
    arguments: tuple[str, ...], sandbox: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if arguments[-1] == "--out":
        arguments = (*arguments, str(tmp_path))
    contacts: list[str | None] = []

    def missing(*, contact: str | None, **_options: Any) -> Any:
        contacts.append(contact)
        raise HypervisorUnavailable("/dev/kvm does not exist")

    monkeypatch.setattr(sandbox, missing)
    invoke(*arguments, "--contact", "ops@example.org", input="")
    invoke(*arguments, env={"WCPOD_CONTACT": "https://example.org/bot"}, input="")
    invoke(*arguments, env={"WCPOD_CONTACT": ""}, input="")
    assert contacts == ["ops@example.org", "https://example.org/bot", None]


def test_the_day_exists(tmp_path: Path) -> None:
    (tmp_path / "260615").mkdir()
    kept = tmp_path / "260615" / "260615.simple.zh.txt"
    kept.write_text("kept")
    result = invoke("run", "--date", "2026-06-15", "--out", str(tmp_path))
    assert result.exit_code == exit_codes.DAY_EXISTS
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
    assert _exit_code(result) == code


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


EVENTS: list[Event] = [
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
    now = Now()
    live = LiveProgress(Console(file=stream, width=100, color_system=None, force_terminal=True), now)
    for event in [*EVENTS, HostCalled("SearchAgent", host_call())]:
        live(event)
    assert now.__rich__().plain == "step 2 of 7: SearchAgent, 0 s of 0 s, 1 page read"
    for _ in range(2):
        live(StepStarted("GenScriptAgent"))
    assert now.__rich__().plain == "step 6 of 7: GenScriptAgent, 0 s of 0 s, 1 page read, try 2"
    assert "    │ print('[red]')" in stream.getvalue()
    assert "… 9 more lines" in stream.getvalue()
    assert "\x1b[2J" not in stream.getvalue()
    assert "\x1b[31m" not in stream.getvalue()


def test_without_a_terminal_output_is_left_as_it_is(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    _write(sys.stdout, "\x1b[31m\r\n世\ud800")
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
        "260615.notes.md",
        "260615.segments.json",
        "260615.simple.zh.txt",
        "260615.tranditional.zh.txt",
        "episode.json",
    ]


@pytest.mark.microvm
def test_run_json(tmp_path: Path) -> None:
    command = [*WCPOD, "run", "--date", "2026-06-15", "--out", "out", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()
    events = [json.loads(line) for line in done.stdout.splitlines()]
    kinds = [event["event"] for event in events]
    assert (kinds[0], kinds[-1]) == ("run_started", "finished")
    assert events[0]["rehearsal"] is True
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {
        "run_started": 1,
        "step_started": 7,
        "step_ended": 7,
        "skill_loaded": 6,
        "code_started": 7,
        "code_ended": 7,
        "host_called": 23,
        "episode_saved": 1,
        "finished": 1,
    }
    assert [event["seconds"] for event in events] == sorted(event["seconds"] for event in events)
    blocked = next(event["call"] for event in events if event.get("call", {}).get("status") == "blocked")
    assert blocked["reason"].startswith("host tables.example.com is not allowed")


def test_run_json_says_how_it_failed(tmp_path: Path) -> None:
    result = invoke("run", "--skills", str(tmp_path), "--out", str(tmp_path / "out"), "--json")
    assert result.exit_code == exit_codes.NOT_CONFIGURED
    failed = json.loads(result.stdout.splitlines()[-1])
    assert (failed["event"], failed["exit_code"]) == ("failed", exit_codes.NOT_CONFIGURED)
    assert "write-script/SKILL.md: No such file or directory" in failed["message"]


@pytest.mark.microvm
def test_a_killed_run_is_resumed(tmp_path: Path) -> None:
    def command(out: str, *more: str) -> list[str]:
        return [*WCPOD, "run", "--date", "2026-06-15", "--out", out, *more]

    subprocess.run(command("whole"), cwd=tmp_path, capture_output=True, check=True)
    with subprocess.Popen(command("cut", "--json"), cwd=tmp_path, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        for line in running.stdout:
            if json.loads(line)["event"] == "step_started" and json.loads(line)["step"] == "ContentAgent":
                running.kill()
                break
    names = sorted(path.name for path in (tmp_path / "cut").iterdir())
    assert names == ["260615", "260615.audit.jsonl", "260615.checkpoints", "260615.pages"]
    done = subprocess.run(command("cut", "--resume"), cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "resume  after " in done.stdout
    assert "start   SearchAgent" not in done.stdout
    assert "done    SearchAgent" not in done.stdout
    assert sorted(path.name for path in (tmp_path / "cut").iterdir()) == ["260615", "260615.audit.jsonl"]
    for name in ("260615.simple.zh.txt", "260615.tranditional.zh.txt", "260615.notes.md"):
        assert (tmp_path / "cut/260615" / name).read_bytes() == (tmp_path / "whole/260615" / name).read_bytes()
    records = [json.loads((tmp_path / out / "260615/episode.json").read_text()) for out in ("cut", "whole")]
    assert records[0]["tool_call_counts"] == records[1]["tool_call_counts"]


def test_the_day_is_that_of_the_listeners(monkeypatch: pytest.MonkeyPatch) -> None:
    class Evening(dt.datetime):
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> Evening:
            return cls(2026, 6, 14, 20, tzinfo=dt.timezone.utc).astimezone(tz)

    monkeypatch.setattr("datetime.datetime", Evening)
    assert _today(SimpleNamespace(show_place=None)) == dt.date(2026, 6, 15)  # type: ignore[arg-type]


def test_a_failed_run_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wcpod.HyperlightRuntime", lambda **_: CannedRuntime())
    result = invoke("run", "--out", str(tmp_path), "--date", "2026-06-15")
    assert result.exit_code == exit_codes.NOT_PUBLISHABLE
    assert result.output.endswith("To go on after the last finished step: the same command with --resume\n")
    assert (tmp_path / "260615.checkpoints").is_dir()


@pytest.mark.parametrize(
    ("option", "value", "code", "message"),
    [
        ("--audio", "nobody", exit_codes.NOT_CONFIGURED, "there is no audio plug-in 'nobody'; installed: none"),
        (
            "--base-address",
            "ftp://example.org",
            exit_codes.USAGE,
            "the base address must be like https://example.org/podcast, not 'ftp://example.org'",
        ),
    ],
)
def test_wrong_products(tmp_path: Path, option: str, value: str, code: int, message: str) -> None:
    result = invoke("run", "--out", str(tmp_path / "out"), option, value)
    assert result.exit_code == code
    assert message in " ".join(result.output.split())


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


@pytest.mark.microvm
def test_ctrl_c_stops_the_guest_at_once() -> None:
    command = [sys.executable, "-m", "wcpod", "exec", "-"]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(b"print('begun')\nwhile True: pass")
    child.stdin.close()
    child.stdin = None
    assert child.stdout.readline() == b"begun\n"  # it comes while the code runs
    begin = time.monotonic()
    child.send_signal(signal.SIGINT)
    _, stderr = child.communicate(timeout=30)
    assert time.monotonic() - begin < 5
    assert (child.returncode, stderr) == (130, b"wcpod: interrupted\n")
