"""The report of an episode: what it shows, and what a browser makes of it."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import browser
from canned_runtime import CannedRuntime, host_call, outcome, reading
from scripted_model import ANY_LENGTH, SCRIPTS, call, scripted_model
from wcpod.cli import cli
from wcpod.exceptions import PipelineError
from wcpod.podcast.day_folder import DayFolder
from wcpod.podcast.report import report_of
from wcpod.podcast.report.timeline import WIDTH, Timeline, _ticks
from wcpod.podcast.run import run_episode

DAY = dt.date(2026, 6, 15)
HOSTILE = (
    '</pre></title><script>document.title="owned"</script><img src="https://evil.example/x" onerror="owned()">"\'&'
)
PHONE, DESKTOP = 390, 1280


def write(out: Path, *, hostile: str = "") -> DayFolder:
    """An episode whose pages, code and output all hold `hostile`."""

    def turns(agent: str) -> list[Any]:
        return [[call("execute_code", agent, code=f"print('{agent}') # {hostile}")], SCRIPTS]

    page = host_call()
    calls = [page, host_call("blocked", reason=f"not on the allow-list {hostile}")]
    if hostile:
        object.__setattr__(page.fetch, "title", hostile)
    runtime = CannedRuntime(lambda _: outcome(f"out {hostile}\x1b[2J", f"err {hostile}", kind="error"), tuple(calls))
    return asyncio.run(
        run_episode(day=DAY, out=out, model=scripted_model(turns), open_runtime=lambda _: runtime, rules=ANY_LENGTH)
    ).folder


@pytest.fixture
def folder(tmp_path: Path) -> DayFolder:
    return write(tmp_path)


def change(folder: DayFolder, **fields: Any) -> None:
    episode = {**json.loads(folder.episode.read_text(encoding="utf-8")), **fields}
    folder.episode.write_text(json.dumps(episode), encoding="utf-8")


def test_what_it_shows(folder: DayFolder) -> None:
    page = report_of(folder)
    for text in (
        "<h1>Episode of 2026-06-15</h1>",
        "REHEARSAL: written by a scripted stand-in",
        "<p>各位听众，早上好。再见。</p>",
        "<p>各位聽眾，早上好。再見。</p>",
        '<li id="source-1"><a href="https://www.bbc.com/sport/football/world-cup" rel="noopener noreferrer">T</a></li>',
        "print(&#39;ContentAgent&#39;)",
        "out \\x1b[2J",
        "not on the allow-list",
    ):
        assert text in page
    assert page.count('<pre class="code">') == 3
    assert page.count("<rect class=") == 7 + 3 + 6 + 5  # steps, runs, fetches, legend


def test_a_way_from_each_sentence_to_its_source_and_back(tmp_path: Path) -> None:
    from test_editor import PAGES
    from test_editor import write as write_sourced

    folder = write_sourced(tmp_path, "巴西队以三比一取胜。决赛定在七月十九日。", reading(PAGES)).folder
    page = report_of(folder)
    assert '<span id="sentence-2">巴西队以三比一取胜。</span><sup><a href="#source-1">1</a></sup>' in page
    assert '<span id="sentence-3">决赛定在七月十九日。</span><sup><a href="#fact-1">F1</a></sup>' in page
    assert re.search(r'<li id="source-1">.*<a href="#sentence-2" aria-label="back to the sentence">', page)
    assert re.search(r'<li id="fact-1">F1: .*决赛定在七月十九日.*<a href="#sentence-3"', page)
    anchors = set(re.findall(r' id="([\w-]+)"', page))
    assert [target for target in re.findall(r'href="#([\w-]+)"', page) if target not in anchors] == []


def test_on_a_phone_nothing_is_cut_without_a_sign(folder: DayFolder) -> None:
    page = report_of(folder)
    assert 'class="scrolls"' in page  # the one part that scrolls sideways says so
    assert page.count('class="wide"') == 1
    assert "overflow-y" not in page
    cells = re.findall(r"<td[^>]*>", page)
    assert cells
    assert [cell for cell in cells if "data-label=" not in cell] == []  # tables become lists there


def test_it_holds_no_script_and_nothing_from_elsewhere(folder: DayFolder) -> None:
    page = report_of(folder)
    assert "<script" not in page
    assert re.findall(r" src=|@import|url\(", page) == []
    assert "content=\"default-src 'none';" in page


def test_a_link_is_https_or_none(folder: DayFolder) -> None:
    fetches = json.loads(folder.episode.read_text(encoding="utf-8"))["fetches"]
    for fetch in fetches:
        fetch["final_url"] = "javascript:alert(1)"
    change(folder, fetches=fetches)
    assert "javascript:" not in report_of(folder)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"schema_version": 2}, "episode.json has schema version 2; this wcpod reads 1"),
        ({"seconds": {}}, "episode.json is not the record of an episode: it has no 'timeline'"),
        ({"fetches": None}, "episode.json is not the record of an episode: 'NoneType' object is not iterable"),
    ],
)
def test_a_record_that_it_cannot_read(folder: DayFolder, fields: dict[str, Any], message: str) -> None:
    change(folder, **fields)
    with pytest.raises(PipelineError, match=re.escape(message)):
        report_of(folder)


def test_a_day_without_an_episode(tmp_path: Path) -> None:
    with pytest.raises(PipelineError) as raised:
        report_of(DayFolder(tmp_path, DAY))
    assert str(raised.value) == f"there is no episode in {tmp_path / '260615'}"


@pytest.mark.parametrize(
    ("longest", "ticks"),
    [(0.9, [0, 0.2, 0.4, 0.6, 0.8]), (6, [0, 1, 2, 3, 4, 5, 6]), (601, [0, 200, 400, 600])],
)
def test_the_ticks_of_the_axis_are_round(longest: float, ticks: list[float]) -> None:
    assert _ticks(longest) == pytest.approx(ticks)


def test_every_bar_lies_in_the_picture(folder: DayFolder) -> None:
    timeline = Timeline.of(json.loads(folder.episode.read_text(encoding="utf-8")))
    assert {bar.what for bar in timeline.bars} == {"step", "run", "fetch"}
    for bar in timeline.bars:
        assert 130 <= bar.x <= bar.x + bar.width <= WIDTH
        assert 0 <= bar.y <= bar.y + bar.height <= timeline.axis


@pytest.mark.parametrize("day", ["2026-06-15", "260615"])
def test_the_command(folder: DayFolder, day: str) -> None:
    result = CliRunner().invoke(cli, ["report", day, "--out", str(folder.out)])
    target = folder.path / "260615.report.html"
    assert (result.exit_code, result.output) == (0, f"{target}\n")
    assert target.read_text(encoding="utf-8") == report_of(folder)
    shown = CliRunner().invoke(cli, ["report", day, "--out", str(folder.out), "--to", "-"])
    assert shown.stdout == report_of(folder)


def test_the_command_without_an_episode(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["report", "2026-06-15", "--out", str(tmp_path)])
    assert (result.exit_code, result.output) == (1, f"wcpod: there is no episode in {tmp_path / '260615'}\n")


def test_a_report_goes_with_its_episode(folder: DayFolder) -> None:
    CliRunner().invoke(cli, ["report", "260615", "--out", str(folder.out)])
    write(folder.out)
    assert not folder.report.exists()


def test_a_page_that_wcpod_did_not_make_stays(folder: DayFolder) -> None:
    folder.report.write_text("mine")
    write(folder.out)
    assert folder.report.read_text() == "mine"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"{",
            "is damaged: it is not JSON (Expecting property name enclosed in double quotes",
        ),
        (b"\xff", "is damaged: it is not JSON ("),
        (b"[" * 100_000, "is damaged: it is not JSON ("),
        (b"{}", "is not the record of an episode: it has no schema_version"),
        (b"[]", "is not the record of an episode: it has no schema_version"),
    ],
)
def test_a_damaged_record_is_named(folder: DayFolder, content: bytes, message: str) -> None:
    folder.episode.write_bytes(content)
    result = CliRunner().invoke(cli, ["report", "260615", "--out", str(folder.out)])
    assert result.exit_code == 1
    assert result.output.startswith(f"wcpod: {folder.episode} {message}")


def test_a_pipe_in_place_of_the_record_is_no_wait(folder: DayFolder) -> None:
    folder.episode.unlink()
    os.mkfifo(folder.episode)
    result = CliRunner().invoke(cli, ["report", "260615", "--out", str(folder.out)])
    assert (result.exit_code, result.output) == (1, f"wcpod: cannot read {folder.episode}: no plain file\n")


# In a browser


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A report whose every foreign text is hostile."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(report_of(write(path.parent, hostile=HOSTILE)), encoding="utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def chromium(address: str) -> Iterator[Any]:  # noqa: ARG001  after the report: Playwright keeps this thread's event loop
    with browser.chromium() as opened:
        yield opened


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, DESKTOP])
def test_in_a_browser(chromium: Any, address: str, width: int, scheme: str) -> None:
    with browser.visit(chromium, address, width=width, color_scheme=scheme) as seen:
        page = seen.page
        assert [url for url in seen.requests if not url.startswith("data:")] == [address]
        assert seen.complaints == []
        assert page.title() == "Episode of 2026-06-15 - wcpod"
        # Nothing sticks out to the side; what is wider scrolls in a box of its own.
        assert page.evaluate("document.documentElement.scrollWidth") == width
        for part in ("#timeline", "#scripts", "#sources", "#counters", "#fetches", "#code", ".wide svg"):
            assert page.locator(part).is_visible()


@pytest.mark.parametrize(("width", "side_by_side"), [(PHONE, False), (DESKTOP, True)])
def test_the_scripts_stand_side_by_side_where_there_is_room(
    chromium: Any, address: str, width: int, side_by_side: bool
) -> None:
    with browser.visit(chromium, address, width=width) as seen:
        left, right = (seen.page.locator(f"section[lang={lang}]").bounding_box() for lang in ("zh-Hans", "zh-Hant"))
        assert (left["y"] == right["y"]) is side_by_side
        assert (left["x"] < right["x"]) is side_by_side


def test_hostile_text_stays_text(chromium: Any, address: str) -> None:
    with browser.visit(chromium, address, width=DESKTOP) as seen:
        page = seen.page
        assert page.locator("script, img, iframe, object, form").count() == 0
        assert page.locator("#sources + ol a").first.inner_text() == HOSTILE
        assert page.locator("pre.code").first.text_content() == f"print('SearchAgent') # {HOSTILE}"
        assert (
            page.locator("#sources + ol a").first.get_attribute("href")
            == "https://www.bbc.com/sport/football/world-cup"
        )


def test_the_code_opens(chromium: Any, address: str) -> None:
    with browser.visit(chromium, address, width=PHONE) as seen:
        code = seen.page.locator("pre.code").first
        assert not code.is_visible()
        seen.page.locator("summary").first.click()
        assert code.is_visible()
        assert seen.page.evaluate("document.documentElement.scrollWidth") == PHONE


def test_a_bar_says_what_it_is(chromium: Any, address: str) -> None:
    with browser.visit(chromium, address, width=DESKTOP) as seen:
        labels = seen.page.locator("svg rect title").all_text_contents()
        assert any(re.fullmatch(r"SearchAgent: [\d.]+ m?s", label) for label in labels)
        assert "run 1: error, 10 ms" in labels
        assert "fetch: blocked https://www.bbc.com/sport/football/world-cup, 100 ms" in labels
