"""The days of a folder at a glance: what was made, what failed and why, what can go on."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from wcpod.podcast.day_folder import DayFolder
from wcpod.podcast.plain_files import read_plain_file

_NAMES = re.compile(r"(\d{6})(?:\.failed\.json|\.checkpoints|\.drafts)?")
_LONGEST = 2000


@dataclass(frozen=True, slots=True)
class Day:
    """One day.

    Attributes:
        state: "made" or "rehearsed", also if a later run failed; "failed" or "unfinished" without an episode.
        show: Name of the show, where the episode says it.
        about: What was made.
        failure: Why the last run failed, if it did.
        resumable: Whether a run can go on with `--resume`.
    """

    day: dt.date
    state: Literal["made", "rehearsed", "failed", "unfinished", "unreadable"]
    show: str
    about: str
    failure: str
    resumable: bool


def days_of(out: Path) -> list[Day]:
    """Each day of the folder that a run has left something of, in order."""
    return [day for stamp in sorted(set(_stamps(out))) if (day := _day(out, stamp)) is not None]


def note_failure(folder: DayFolder, message: str, code: int) -> None:
    """Keep why the day's run failed, beside the folder of the day. Best effort: the run has failed anyway."""
    moment = dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds")
    content = {"time": moment, "exit_code": code, "message": message[:_LONGEST]}
    with contextlib.suppress(OSError):
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(folder.failure, flags, 0o644), "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(json.dumps(content, ensure_ascii=False) + "\n")


def forget_failure(folder: DayFolder) -> None:
    """A run has worked."""
    with contextlib.suppress(OSError):
        folder.failure.unlink()


def _stamps(out: Path) -> Iterator[str]:
    with contextlib.suppress(OSError):
        for path in out.iterdir():
            if found := _NAMES.fullmatch(path.name):
                yield found[1]


def _day(out: Path, stamp: str) -> Day | None:
    try:
        folder = DayFolder(out, dt.datetime.strptime(stamp, "%y%m%d").date())
    except ValueError:
        return None
    failure = str(_json(folder.failure).get("message", ""))
    resumable = folder.checkpoints.is_dir()
    if folder.existing() == "nothing":
        if not (failure or resumable or folder.drafts.is_dir()):
            return None
        return Day(folder.day, "failed" if failure else "unfinished", "", "", failure, resumable)
    try:
        episode = _json(folder.episode)
        script, model = episode["script"], episode["model"]
        about = (
            f"{model['kind'] if model['rehearsal'] else model['name']}, {script['han_characters']} Han characters, "
            f"{_counted(script['drafts'], 'draft')}, {_counted(len(episode['editor']['pages']), 'page')}"
        )
        state: Literal["made", "rehearsed"] = "rehearsed" if model["rehearsal"] is True else "made"
        return Day(folder.day, state, str(episode["show"]["name"]), about, failure, resumable)
    except (LookupError, TypeError):
        return Day(
            folder.day, "unreadable", "", f"no record that this version reads in {folder.path}", failure, resumable
        )


def _json(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(read_plain_file(file))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")
