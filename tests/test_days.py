"""`wcpod days`: what was made, what failed and why."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from canned_runtime import CannedRuntime, host_call, reading
from test_editor import PAGES, write
from wcpod.cli import cli, exit_codes
from wcpod.podcast.day_folder import DayFolder
from wcpod.podcast.days import days_of, forget_failure, note_failure

DAY = dt.date(2026, 6, 15)


def listed(out: Path, *more: str) -> Any:
    return CliRunner().invoke(cli, ["days", "--out", str(out), *more])


def test_nothing(tmp_path: Path) -> None:
    assert listed(tmp_path).output == f"there is no day in {tmp_path}\n"
    assert listed(tmp_path / "none").exit_code == 0


def test_a_day_that_was_made_and_one_that_failed(tmp_path: Path) -> None:
    write(tmp_path, "巴西队以三比一战胜摩洛哥队。", reading(PAGES))
    note_failure(DayFolder(tmp_path, dt.date(2026, 6, 16)), "the script breaks the rules:\n- too short\x1b[2J", 1)
    DayFolder(tmp_path, dt.date(2026, 6, 17)).checkpoints.mkdir()
    assert listed(tmp_path).output.splitlines() == [
        "2026-06-15  made        world-cup-2026  m, 26 Han characters, 1 draft, 3 pages",
        "2026-06-16  failed",
        "            the script breaks the rules:",
        "            - too short\\x1b[2J",
        "2026-06-17  unfinished",
        "            can go on: the same command with --resume",
    ]
    lines = [json.loads(line) for line in listed(tmp_path, "--json").output.splitlines()]
    assert [line["state"] for line in lines] == ["made", "failed", "unfinished"]


def test_a_failure_is_forgotten_when_a_run_works(tmp_path: Path) -> None:
    folder = DayFolder(tmp_path, DAY)
    note_failure(folder, "no", 1)
    assert json.loads(folder.failure.read_text())["exit_code"] == 1
    forget_failure(folder)
    assert days_of(tmp_path) == []


def test_a_link_in_the_place_of_the_note_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("kept")
    DayFolder(tmp_path, DAY).failure.symlink_to(tmp_path / "mine")
    note_failure(DayFolder(tmp_path, DAY), "no", 1)
    assert (tmp_path / "mine").read_text() == "kept"


@pytest.mark.parametrize("content", ["", "[]", "{}", "{torn", '{"script": 3}'])
def test_a_record_that_is_none(tmp_path: Path, content: str) -> None:
    folder = DayFolder(tmp_path, DAY)
    folder.path.mkdir()
    folder.episode.write_text(content)
    (tmp_path / "999999").mkdir()
    (tmp_path / "notes.txt").write_text("x")
    assert [day.state for day in days_of(tmp_path)] == ["unreadable"]
    assert listed(tmp_path).exit_code == 0


def test_the_command_notes_why_a_day_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = CannedRuntime(calls=(host_call("error", reason="the server answered 503"),))
    monkeypatch.setattr("wcpod.HyperlightRuntime", lambda **_: failing)
    monkeypatch.setattr("wcpod.podcast.rehearsal.transcript.Transcript.expect", lambda *_, **__: "SCRIPT COUNT")
    result = CliRunner().invoke(cli, ["run", "--date", "2026-06-15", "--out", str(tmp_path)])
    assert result.exit_code == exit_codes.NOT_PUBLISHABLE
    (day,) = days_of(tmp_path)
    assert (day.state, day.failure) == ("failed", result.stderr.removeprefix("wcpod: ").strip())
