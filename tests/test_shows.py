"""Shows: those that come with wcpod, one made by a command, one written by its document alone, and wrong ones."""

from __future__ import annotations

import datetime as dt
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import wcpod
from wcpod import FetchPolicy
from wcpod.cli import cli
from wcpod.exceptions import ModelNotConfigured, ShowError
from wcpod.podcast.rehearsal.phrases import phrases_of
from wcpod.podcast.show import default_show, find_show, load_show, new_show
from wcpod.podcast.skills import check_skills
from wcpod.shows import DEFAULT_SHOW, shipped_shows

ROOT = Path(__file__).parent.parent
WCPOD = [sys.executable, "-m", "wcpod"]
_FILE = re.compile(r"<!-- file: (\S+) -->\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# Words of the shows that come with wcpod. They may stand in the shows' own folders, and nowhere else in the product.
TOPICS = re.compile(r"bbc(?!\()|world.?cup|fifa|worldcup|football|premier league|世界[杯盃]|足球|英超", re.IGNORECASE)


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*WCPOD, *arguments], cwd=cwd, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", sorted(shipped_shows()))
def test_each_shipped_show_is_right(name: str) -> None:
    show = find_show(name)
    assert check_skills(show)
    assert phrases_of(show).stories
    assert CliRunner().invoke(cli, ["show", "check", name]).exit_code == 0


def test_there_are_two_shows_and_a_default() -> None:
    assert len(shipped_shows()) >= 2
    assert default_show().name == DEFAULT_SHOW
    assert FetchPolicy.bbc().hosts == tuple(default_show().pages.hosts)


@pytest.mark.parametrize(
    ("day", "note"),
    [
        (dt.date(2026, 6, 10), "二零二六年世界杯要到六月十一日才开幕"),
        (dt.date(2026, 6, 11), None),
        (dt.date(2026, 7, 19), None),
        (dt.date(2026, 7, 20), "二零二六年世界杯已经在七月十九日落幕"),
    ],
)
def test_outside_its_season_a_show_says_so(day: dt.date, note: str | None) -> None:
    assert default_show().out_of_season(day) == note


def test_no_fact_calls_a_final_that_is_over_the_future() -> None:
    facts = [fact.text for fact in default_show().facts_on(dt.date(2026, 11, 30))]
    assert [fact for fact in facts if re.search("决赛(?!.*(?:踢的|二零二二)).*七月十九", fact)] == []
    assert any("是七月十九日踢的" in fact for fact in facts)


@pytest.mark.microvm
@pytest.mark.parametrize("day", ["2026-06-15", "2026-12-01"])
@pytest.mark.parametrize("name", sorted(shipped_shows()))
def test_each_shipped_show_is_rehearsed(tmp_path: Path, name: str, day: str) -> None:
    done = run("run", "--show", name, "--date", day, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    show, stamp = find_show(name), day.replace("-", "")[2:]
    script = (tmp_path / f"outputs/{stamp}/{stamp}.simple.zh.txt").read_text(encoding="utf-8")
    assert f"《{show.title.simplified}》" in script
    note = show.out_of_season(dt.date.fromisoformat(day))
    assert note is None or note in script
    assert (f"{day} is out of the season of {name}: {note}\n" in done.stdout) is (note is not None)
    record = json.loads((tmp_path / f"outputs/{stamp}/episode.json").read_text(encoding="utf-8"))
    assert record["show"]["name"] == name
    assert record["editor"]["samples"] is True
    assert len(record["editor"]["sentences"]) > 15
    assert all(sentence["pages"] or sentence["facts"] for sentence in record["editor"]["sentences"])
    notes = (tmp_path / f"outputs/{stamp}/{stamp}.notes.md").read_text(encoding="utf-8")
    assert notes.startswith(f"# {show.title.simplified} ")


@pytest.mark.microvm
def test_a_new_show_runs_as_it_is(tmp_path: Path) -> None:
    assert run("show", "new", "mine", cwd=tmp_path).returncode == 0
    checked = run("show", "check", "mine", cwd=tmp_path)
    assert (checked.returncode, checked.stdout.splitlines()[-1]) == (0, "can be rehearsed")
    done = run("run", "--show", "mine", "--date", "2026-06-15", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(list((tmp_path / "outputs/260615").glob("*.zh.txt"))) == 2
    again = run("show", "new", "mine", cwd=tmp_path)
    assert (again.returncode, again.stderr) == (
        1,
        "wcpod: mine exists already; nothing was changed. Choose another path\n",
    )


@pytest.mark.microvm
@pytest.mark.parametrize("day", ["2026-06-15", "2026-06-16", "2026-12-24"])
def test_a_show_written_by_its_document_alone(tmp_path: Path, day: str) -> None:
    blocks = _FILE.findall((ROOT / "docs" / "shows.md").read_text(encoding="utf-8"))
    assert len(blocks) == 7
    for name, content in blocks:
        file = tmp_path / "harbour" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
    assert run("show", "check", "harbour", cwd=tmp_path).returncode == 0
    done = run("run", "--show", "harbour", "--date", day, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    stamp = day.replace("-", "")[2:]
    texts = [path.read_text(encoding="utf-8") for path in sorted((tmp_path / f"outputs/{stamp}").glob("*.zh.txt"))]
    assert len(texts) == 2
    assert ("航季十一月三十日已经结束" in texts[0]) is (day == "2026-12-24")


def test_no_topic_outside_the_shows() -> None:
    package = Path(wcpod.__file__).parent
    files = [
        *(
            path
            for path in package.rglob("*")
            if path.suffix in (".py", ".pyi", ".toml", ".tsv", ".md", ".j2", ".html")
        ),
        *(ROOT / "crates").glob("*/src/**/*.rs"),
    ]
    assert len(files) > 100
    found = []
    for path in files:
        if "shows" in path.relative_to(ROOT).parts[:3]:
            continue
        lines = path.read_text(encoding="utf-8").split("#[cfg(test)]")[0].splitlines()
        found += [f"{path.relative_to(ROOT)}: {line.strip()}" for line in lines if TOPICS.search(line)]
    assert found == []


# Wrong shows


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return new_show(tmp_path / "mine")


def change(old: str, new: str) -> Callable[[Path], None]:
    def changed(file: Path) -> None:
        text = file.read_text(encoding="utf-8")
        assert old in text
        file.write_text(text.replace(old, new, 1), encoding="utf-8")

    return changed


@pytest.mark.parametrize(
    ("break_it", "problem"),
    [
        (lambda file: file.unlink(), ": No such file or directory"),
        (lambda file: file.write_bytes(b"\xff"), ": not UTF-8 at byte 0"),
        (change('topic = "', "topic = "), ": not TOML: "),
        (change("topic =", "tropic ="), ": topic: is missing; add it"),
        (change("topic =", "tropic ="), ": tropic: there is no such key; take it out"),
        (change('topic = "what is on at the city library"', 'topic = " "'), ": topic: must not be empty"),
        (
            change("length = [150, 400]", "length = [400, 150]"),
            ": script: length must be [fewest, most] Han characters",
        ),
        (change("length = [150, 400]", "length = [400]"), ": script.length: must have at least 2"),
        (change("sources = 3", "sources = -1"), ": script.sources: must be at least 0"),
        (change("sources = 3", 'sources = "3"'), ": script.sources: must be a valid integer"),
        (change('hosts = ["library', 'hosts = ["https://library'), ": pages: "),
        (change('hosts = ["library', 'hosts = ["other'), "host library.example.org is not allowed"),
        (change("from = 2020-01-01", "from = 2020-13-01"), ": not TOML: "),
        (change("from = 2020-01-01", 'from = "soon"'), ": facts[3].from: must be a valid date"),
        (
            change("from = 2020-01-01", "from = 2020-01-01\nuntil = 2019-01-01"),
            ": facts[3]: from must not be after until",
        ),
        (
            change('simplified = "河滨图书馆"', 'simplified = "Riverside"'),
            ": names[1].simplified: must hold Han characters",
        ),
        (change('pages = ["Riverside Library"]', "pages = []"), ": names[1]: pages must have at least 1 way"),
        (change('kind = "place"', 'kind = "planet"'), ": names[1].kind: must be 'team', 'person', 'place' or 'word'"),
        (
            change('listeners = "Asia/Shanghai"', 'listeners = "Peking"'),
            ": clock.listeners: must be a time zone such as",
        ),
        (
            change('source = "https', 'source = "http'),
            ": facts[1].source: must be an address that begins with https://",
        ),
    ],
)
def test_a_wrong_show(folder: Path, break_it: Any, problem: str) -> None:
    file = folder / "show.toml"
    break_it(file)
    with pytest.raises(ShowError) as raised:
        load_show(folder)
    lines = str(raised.value).splitlines()
    assert any(line.startswith(str(file)) and problem in line for line in lines), lines
    result = CliRunner().invoke(cli, ["show", "check", str(folder)])
    assert (result.exit_code, result.output) == (1, f"wcpod: {raised.value}\n")


def test_wrong_phrases(folder: Path) -> None:
    change("take = 3", "take = 0")(folder / "rehearsal" / "rehearsal.toml")
    with pytest.raises(ShowError, match=r"rehearsal\.toml: stories\[1\]\.take: must be at least 1"):
        phrases_of(load_show(folder))


def test_a_show_that_cannot_be_rehearsed(folder: Path) -> None:
    file = folder / "rehearsal" / "rehearsal.toml"
    file.unlink()
    with pytest.raises(ModelNotConfigured) as raised:
        phrases_of(load_show(folder))
    assert str(raised.value) == (
        f"the show mine cannot be rehearsed: {file} is missing; add it (docs/shows.md), or choose another --model"
    )
    result = CliRunner().invoke(cli, ["show", "check", str(folder)])
    assert (result.exit_code, "cannot be rehearsed" in result.output) == (0, True)


def test_a_show_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ShowError) as raised:
        find_show(str(tmp_path / "none"))
    assert str(raised.value) == (
        f"there is no show '{tmp_path / 'none'}': no folder of that name, and none of wcpod's "
        f"({', '.join(shipped_shows())})"
    )
    result = CliRunner().invoke(cli, ["run", "--show", "none", "--out", str(tmp_path / "out")])
    assert result.exit_code == 5
    assert not (tmp_path / "out").exists()


def test_the_list() -> None:
    lines = CliRunner().invoke(cli, ["show", "list"]).output.splitlines()
    assert [line.split(":")[0] for line in lines] == ["bbc-football", "world-cup-2026 (default)"]
