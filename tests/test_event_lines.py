"""Events for programs, and the page that documents them."""

from __future__ import annotations

import io
import json
import re
import typing
from pathlib import Path

import pytest

from canned_runtime import host_call, outcome
from wcpod.podcast import progress
from wcpod.podcast.event_lines import EventLines

EVENTS: list[progress.Event] = [
    progress.RunResumed("adapt_content"),
    progress.StepStarted("SearchAgent"),
    progress.StepEnded("SearchAgent", 1.5),
    progress.SkillLoaded("SearchAgent", "search-worldcup"),
    progress.CodeStarted("SearchAgent", "print('世')"),
    progress.HostCalled("SearchAgent", host_call("blocked", reason="not allowed")),
    progress.CodeEnded("SearchAgent", "x", outcome("a\u2028\ud800\n", "err")),
    progress.DraftReturned(1, ("too short",)),
    progress.EpisodeSaved((Path("outputs/260615/episode.json"),)),
    progress.SearchReturned(1, "the episode rests on 0 pages, not 3"),
]


def written() -> list[dict[str, typing.Any]]:
    stream = io.StringIO()
    lines = EventLines(stream)
    for event in EVENTS:
        lines(event)
    assert stream.getvalue().isascii()
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_every_event_is_here() -> None:
    assert {type(event) for event in EVENTS} == set(typing.get_args(progress.Event))


def test_what_a_line_says() -> None:
    lines = written()
    assert {**lines[2], "seconds": 0} == {"event": "step_ended", "seconds": 0, "step": "SearchAgent", "took": 1.5}
    assert lines[5]["call"]["fetch"]["host"] == "www.bbc.com"
    assert lines[6]["stdout"] == "a\u2028\ud800\n"
    assert lines[8]["files"] == ["outputs/260615/episode.json"]


@pytest.mark.parametrize("line", written(), ids=lambda line: line["event"])
def test_the_page_names_every_field(line: dict[str, typing.Any]) -> None:
    page = (Path(__file__).parent.parent / "docs" / "events.md").read_text(encoding="utf-8")
    documented = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", page, re.MULTILINE))
    assert re.findall(r"`(\w+)`", documented[line["event"]]) == [key for key in line if key not in ("event", "seconds")]


def test_a_reader_that_went_away_does_not_end_the_run() -> None:
    class Closed(io.StringIO):
        def write(self, _text: str) -> int:
            raise BrokenPipeError

    EventLines(Closed())(EVENTS[0])
