"""Show notes, feed and audio of an episode. Titles of pages are hostile until shown otherwise."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime as dt
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt

from canned_runtime import CannedRuntime, host_call
from scripted_model import ANY_LENGTH, scripted_model
from wcpod.exceptions import PipelineError
from wcpod.podcast.audio import Audio, AudioNotInstalled, load_narrator
from wcpod.podcast.day_folder import DayFolder
from wcpod.podcast.feed import BaseAddressError, base_address, feed_of
from wcpod.podcast.products import Products
from wcpod.podcast.run import Episode, run_episode
from wcpod.podcast.scripts import Scripts
from wcpod.podcast.show import default_show
from wcpod.podcast.show_notes import show_notes, summary_of

DAY = dt.date(2026, 6, 15)
SCRIPTS = Scripts("各位听众，早上好。\n\n葡萄牙队以二比一战胜了克罗地亚队。\n\n再见。", "")
HOSTILE = "](https://evil.example) <script>alert(1)</script> *a* `b`\n# c &amp; \x1b[31m"


def fetch(url: str, title: str | None = "Title", status: str = "ok") -> dict[str, Any]:
    return {"status": status, "final_url": url, "title": title}


def episode(*fetches: dict[str, Any], **more: Any) -> dict[str, Any]:
    han = {"simplified": "世界杯五分钟", "traditional": "世界盃五分鐘"}
    return {
        "day": "2026-06-15",
        "show": {"name": "a-show", "title": han, "about": han, "listeners": "Asia/Shanghai"},
        "fetches": list(fetches),
        "script": {"estimated_minutes": 5.19},
        **more,
    }


def test_the_notes() -> None:
    pages = [
        fetch("https://www.bbc.com/a", "A - BBC"),
        fetch("https://www.bbc.com/b", None),
        fetch("https://www.bbc.com/a", "A again"),
        fetch("https://www.bbc.com/c", status="blocked"),
        fetch("javascript:alert(1)", "no page"),
    ]
    assert show_notes(SCRIPTS, episode(*pages, note="REHEARSAL: not news.")) == (
        "# 世界杯五分钟 2026-06-15\n\n"
        "> REHEARSAL: not news.\n\n"
        "葡萄牙队以二比一战胜了克罗地亚队。\n\n"
        "约5分钟。\n\n"
        "## 资料来源\n\n"
        "- [A - BBC](<https://www.bbc.com/a>)\n"
        "- [https://www.bbc.com/b](<https://www.bbc.com/b>)\n"
    )


def test_a_rehearsal_says_so_in_its_title() -> None:
    notes = show_notes(SCRIPTS, episode(model={"rehearsal": True}))
    assert notes.startswith("# 世界杯五分钟 2026-06-15（彩排）\n")


def test_a_title_is_no_markup_in_the_notes() -> None:
    notes = show_notes(SCRIPTS, episode(fetch("https://www.bbc.com/a>b c", HOSTILE)))
    inline = MarkdownIt("commonmark").parse(notes)[-4].children or []
    assert [token.type for token in inline] == ["link_open", "text", "link_close"]
    assert inline[0].attrs == {"href": "https://www.bbc.com/a%3Eb%20c"}
    assert inline[1].content == ("](https://evil.example) <script>alert(1)</script> *a* `b` # c &amp; \\x1b[31m")


def test_notes_without_a_source() -> None:
    assert show_notes(SCRIPTS, episode()).endswith("## 资料来源\n\n没有。\n")


@pytest.mark.parametrize(
    ("paragraphs", "summary"),
    [
        # What opens a paragraph without telling anything by itself is passed over, or left out.
        (
            [
                "各位听众，早上好。今天是六月十五日。",
                "先来看K组，葡萄牙队以二比一战胜了克罗地亚队。",
                "他们的教练很满意。荷兰队和日本队打成一比一。",
            ],
            "葡萄牙队以二比一战胜了克罗地亚队。荷兰队和日本队打成一比一。",
        ),
        (["打头的是H组的较量。乌拉圭队拿到三分，出线的路宽了一些。"], "乌拉圭队拿到三分，出线的路宽了一些。"),
        (["门将因为伤病缺席下一轮比赛。", "再见。"], "门将因为伤病缺席下一轮比赛。"),
        (["五分钟，六条消息。", "感谢收听，明天见。"], "五分钟，六条消息。"),
        ([f"第{number}场的比分是{number}比零，球迷都很高兴。" * 3 for number in "一二三四五六七八九"], None),
    ],
)
def test_a_summary_can_be_understood_by_itself(paragraphs: list[str], summary: str | None) -> None:
    said = summary_of(Scripts("\n\n".join(paragraphs), ""))
    assert said == summary if summary else 60 < len(said) <= 160


FOLDER = DayFolder(Path("outputs"), DAY)


def test_the_feed() -> None:
    pages = (fetch("https://www.bbc.com/a?b&c", HOSTILE),)
    feed = feed_of(
        SCRIPTS,
        episode(*pages),
        FOLDER,
        base="https://example.org/pod/",
        audio=Audio(b"abc", "mp3", "audio/mpeg"),
    )
    rss = ElementTree.fromstring(feed)
    assert (rss.tag, rss.get("version")) == ("rss", "2.0")
    assert rss.findtext("channel/link") == "https://example.org/pod/"
    item = rss.find("channel/item")
    assert item is not None
    assert {child.tag: child.text for child in item if "}" not in child.tag} == {
        "title": "世界杯五分钟 2026-06-15",
        "link": "https://example.org/pod/260615/260615.notes.md",
        "guid": "wcpod:a-show:2026-06-15",
        "pubDate": "Mon, 15 Jun 2026 00:00:00 +0800",
        "description": "葡萄牙队以二比一战胜了克罗地亚队。\n](https://evil.example) <script>alert(1)</script> *a* `b` "
        "# c &amp; \\x1b[31m https://www.bbc.com/a?b&c",
        "enclosure": None,
    }
    assert item.find("enclosure").attrib == {  # type: ignore[union-attr]
        "url": "https://example.org/pod/260615/260615.mp3",
        "length": "3",
        "type": "audio/mpeg",
    }


@pytest.mark.parametrize("text", ["https://example.org/pod", "https://example.org/pod/", "https://example.org/pod//"])
def test_a_base_address_ends_with_one_slash(text: str) -> None:
    assert base_address(text) == "https://example.org/pod/"


@pytest.mark.parametrize(
    "text", ["example.org", "ftp://example.org", "https://", "https://example.org/?a", "/pod", "#"]
)
def test_what_is_no_base_address(text: str) -> None:
    with pytest.raises(BaseAddressError) as raised:
        base_address(text)
    assert str(raised.value) == f"the base address must be like https://example.org/podcast, not {text!r}"


def narrate(script: str) -> Audio:
    """A plug-in for the tests."""
    return Audio(f"spoken: {script}".encode(), "mp3", "audio/mpeg")


def test_a_plug_in_is_found_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    found = EntryPoints([EntryPoint("myvoice", "test_products:narrate", "wcpod.audio")])
    monkeypatch.setattr("wcpod.podcast.audio.entry_points", lambda group: found.select(group=group))
    assert load_narrator("myvoice") is narrate
    with pytest.raises(AudioNotInstalled) as raised:
        load_narrator("other")
    assert str(raised.value) == "there is no audio plug-in 'other'; installed: myvoice"


def test_an_audio_file_has_a_plain_ending() -> None:
    with pytest.raises(ValueError, match=r"Audio\.ending must be letters and digits such as 'mp3', not '\.\./x'"):
        dataclasses.replace(narrate(""), ending="../x")


def write(out: Path, products: Products) -> Episode:
    return asyncio.run(
        run_episode(
            day=DAY,
            out=out,
            model=scripted_model(),
            open_runtime=lambda _: CannedRuntime(calls=(host_call(),)),
            rules=ANY_LENGTH,
            products=products,
        )
    )


def test_products_are_saved_with_the_episode_and_go_with_it(tmp_path: Path) -> None:
    folder = write(tmp_path, Products(base="https://example.org/", narrator=narrate)).folder.path
    assert sorted(path.name for path in folder.iterdir()) == [
        "260615.mp3",
        "260615.notes.md",
        "260615.rss.xml",
        "260615.segments.json",
        "260615.simple.zh.txt",
        "260615.tranditional.zh.txt",
        "episode.json",
    ]
    assert (folder / "260615.mp3").read_text(encoding="utf-8") == "spoken: 各位听众，早上好。再见。"
    feed = ElementTree.parse(tmp_path / "feed.xml")
    assert [item.text for item in feed.findall("channel/item/title")] == ["世界杯五分钟 2026-06-15（彩排）"]
    assert feed.findtext("channel/image/url") == "https://example.org/cover.png"
    assert (tmp_path / "cover.png").read_bytes() == (default_show().folder / "cover.png").read_bytes()
    write(tmp_path, Products())
    assert not (folder / "260615.mp3").exists()
    assert not (folder / "260615.rss.xml").exists()


def raise_value_error(script: str) -> Audio:
    raise ValueError(f"no voice today for {len(script)} characters")


def test_an_audio_plug_in_that_fails_is_named(tmp_path: Path) -> None:
    with pytest.raises(PipelineError) as raised:
        write(tmp_path, Products(narrator=raise_value_error))
    assert str(raised.value).startswith("the audio plug-in failed: ValueError: no voice today for ")
    with pytest.raises(PipelineError) as raised:
        write(tmp_path, Products(narrator=lambda _script: b"mp3"))  # type: ignore[arg-type]
    assert str(raised.value) == "the audio plug-in returned bytes, not wcpod.podcast.audio.Audio"
    assert not (tmp_path / "260615").exists()


def test_an_audio_plug_in_that_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    found = EntryPoints([EntryPoint("broken", "no_such_module:narrate", "wcpod.audio")])
    monkeypatch.setattr("wcpod.podcast.audio.entry_points", lambda group: found.select(group=group))
    with pytest.raises(AudioNotInstalled) as raised:
        load_narrator("broken")
    assert str(raised.value) == (
        "the audio plug-in 'broken' cannot be loaded: ModuleNotFoundError: No module named 'no_such_module'"
    )


def test_a_feed_that_cannot_be_written_does_not_undo_the_episode(tmp_path: Path) -> None:
    (tmp_path / "feed.xml").mkdir()
    with pytest.raises(PipelineError) as raised:
        write(tmp_path, Products(base="https://example.org/"))
    assert str(raised.value) == (
        f"the episode is saved, but not the feed: cannot write {tmp_path / 'feed.xml'}: Is a directory"
    )
    assert (tmp_path / "260615" / "episode.json").is_file()
