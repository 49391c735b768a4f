"""Ctrl-C and SIGTERM, at any moment: the exit code, the last word, and no half-made day."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from wcpod.cli import cli, exit_codes

WCPOD = [sys.executable, "-m", "wcpod"]
signals = pytest.mark.parametrize(
    ("number", "code", "word"),
    [(signal.SIGINT, exit_codes.INTERRUPTED, "interrupted"), (signal.SIGTERM, exit_codes.TERMINATED, "terminated")],
)


def wait_for_main(process: subprocess.Popen[str]) -> None:
    """Until our code has begun: a signal that comes earlier ends the process as Python does by itself."""
    status = Path(f"/proc/{process.pid}/status")
    while not int(status.read_text().split("SigCgt:\t")[1].split()[0], 16) >> (signal.SIGTERM - 1) & 1:
        time.sleep(0.002)


@signals
@pytest.mark.microvm
@pytest.mark.parametrize("delay", [0.0, 0.05, 0.1, 0.2, 0.3, 0.45, 0.7])
def test_a_run_ends_with_its_exit_code_and_a_last_line(
    number: signal.Signals, code: int, word: str, delay: float, tmp_path: Path, slowness: float
) -> None:
    command = [*WCPOD, "run", "--json", "--date", "2026-06-15", "--out", "out"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=tmp_path, text=True, **pipes) as process:  # type: ignore[call-overload]
        wait_for_main(process)
        time.sleep(delay * slowness)
        process.send_signal(number)
        output, errors = process.communicate(timeout=60)
    if not output:  # before the command itself began
        assert (process.returncode, errors.strip()) == (code, f"wcpod: {word}")
        return
    last = json.loads(output.splitlines()[-1])
    if process.returncode == 0:  # it was quicker
        assert last["event"] == "finished"
        return
    assert (process.returncode, last["event"], last["exit_code"]) == (code, "failed", code)
    assert last["message"].startswith(f"{word}; ")
    assert errors == f"wcpod: {last['message']}\n"
    assert not (tmp_path / "out" / "260615").exists() or "the episode is saved" in last["message"]


@signals
@pytest.mark.microvm
def test_exec_ends_at_once(number: signal.Signals, code: int, word: str) -> None:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*WCPOD, "exec", "-"], **pipes) as process:  # type: ignore[call-overload]
        process.stdin.write(b"print('begun')\nwhile True: pass")
        process.stdin.close()
        process.stdin = None
        assert process.stdout.readline() == b"begun\n"
        process.send_signal(number)
        _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (code, f"wcpod: {word}\n".encode())


@pytest.mark.microvm
def test_sigterm_where_sigint_is_ignored() -> None:
    """As for a job that a shell put into the background."""
    program = f"""
import os, signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
os.execv({sys.executable!r}, [*{WCPOD!r}, "exec", "-"])
"""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", program], **pipes) as process:  # type: ignore[call-overload]
        process.stdin.write(b"print('begun')\nwhile True: pass")
        process.stdin.close()
        process.stdin = None
        assert process.stdout.readline() == b"begun\n"
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == exit_codes.TERMINATED, errors
    assert b"Traceback" not in errors


def test_an_interrupt_after_the_episode_was_saved_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from wcpod.podcast.progress import EpisodeSaved

    async def run_episode(**options: object) -> None:
        options["listener"](EpisodeSaved((tmp_path / "a.txt",)))  # type: ignore[operator]
        raise KeyboardInterrupt

    monkeypatch.setattr("wcpod.podcast.run.run_episode", run_episode)
    result = CliRunner().invoke(cli, ["run", "--json", "--out", str(tmp_path)], prog_name="wcpod")
    assert result.exit_code == exit_codes.INTERRUPTED
    assert json.loads(result.stdout.splitlines()[-1])["message"] == "interrupted; the episode is saved"
