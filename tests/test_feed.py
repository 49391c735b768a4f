"""The feed over all days, read by two parsers that are not ours."""

from __future__ import annotations

import datetime as dt
import io
import json
import threading
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import feedparser
import podcastparser
import pytest

from wcpod.podcast.all_days import NoEpisodes, write_feed
from wcpod.podcast.day_folder import DayFolder

BASE = "https://example.org/pod/"
SCRIPT = "各位听众，早上好。\n\n葡萄牙队以二比一战胜了克罗地亚队。\n\n再见。\n"


def episode(day: dt.date, **more: Any) -> dict[str, Any]:
    return {
        "day": day.isoformat(),
        "show": {
            "name": "a-show",
            "title": {"simplified": "五分钟", "traditional": "五分鐘"},
            "about": {"simplified": "每天五分钟。", "traditional": "每天五分鐘。"},
            "listeners": "Asia/Shanghai",
        },
        "fetches": [{"status": "ok", "final_url": "https://www.bbc.com/a?b&c", "title": "A <b> & ]]> \x1b"}],
        "script": {"estimated_minutes": 5.2},
        **more,
    }


def saved(out: Path, day: dt.date, **more: Any) -> DayFolder:
    folder = DayFolder(out, day)
    folder.publish(SCRIPT, SCRIPT, episode(day, **more), {"notes.md": b"notes"})
    return folder


@pytest.fixture
def out(tmp_path: Path) -> Path:
    for number in (14, 16, 15):
        saved(tmp_path, dt.date(2026, 6, number))
    (tmp_path / "260615" / "260615.mp3").write_bytes(b"x" * 100)
    (tmp_path / "cover.png").write_bytes(b"png")
    return tmp_path


def test_feedparser_reads_it(out: Path) -> None:
    parsed = feedparser.parse(write_feed(out, BASE).read_bytes())
    assert parsed.bozo is False
    assert parsed.version == "rss20"
    channel = parsed.feed
    assert (channel.title, channel.language, channel.subtitle) == ("五分钟", "zh-cn", "每天五分钟。")
    assert channel.image.href == f"{BASE}cover.png"
    assert [link.href for link in channel.links if link.rel == "self"] == [f"{BASE}feed.xml"]
    assert channel.author == "五分钟"
    assert [tag.term for tag in channel.tags] == ["News", "Daily News"]
    assert channel.updated_parsed is not None
    assert [entry.title for entry in parsed.entries] == ["五分钟 2026-06-16", "五分钟 2026-06-15", "五分钟 2026-06-14"]
    assert parsed.entries[0].published == "Tue, 16 Jun 2026 00:00:00 +0800"
    assert len({entry.id for entry in parsed.entries}) == 3
    entry = parsed.entries[1]
    assert entry.enclosures[0].href == f"{BASE}260615/260615.mp3"
    assert (entry.enclosures[0].length, entry.enclosures[0].type) == ("100", "audio/mpeg")
    assert entry.itunes_duration == "312"
    assert "葡萄牙队以二比一战胜了克罗地亚队。" in entry.summary


def test_podcastparser_reads_it(out: Path) -> None:
    parsed = podcastparser.parse(f"{BASE}feed.xml", io.BytesIO(write_feed(out, BASE).read_bytes()))
    assert (parsed["title"], parsed["language"], parsed["link"]) == ("五分钟", "zh-cn", BASE)
    assert parsed["cover_url"] == f"{BASE}cover.png"
    assert parsed["itunes_author"] == "五分钟"
    assert parsed["type"] == "episodic"
    assert parsed["explicit"] is False
    # This reader keeps only what has a recording.
    [item] = [entry for entry in parsed["episodes"] if entry["enclosures"]]
    assert item["enclosures"] == [{"url": f"{BASE}260615/260615.mp3", "file_size": 100, "mime_type": "audio/mpeg"}]
    assert item["total_time"] == 312
    assert item["published"] == dt.datetime(2026, 6, 14, 16, tzinfo=dt.timezone.utc).timestamp()


def test_the_scripts_are_its_transcripts(out: Path) -> None:
    item = ElementTree.parse(write_feed(out, BASE)).findall("channel/item")[0]
    found = [element.attrib for element in item if element.tag.endswith("}transcript")]
    assert found == [
        {"url": f"{BASE}260616/260616.simple.zh.txt", "type": "text/plain", "language": "zh-CN"},
        {"url": f"{BASE}260616/260616.tranditional.zh.txt", "type": "text/plain", "language": "zh-TW"},
    ]


def test_the_same_days_make_the_same_feed(out: Path) -> None:
    assert write_feed(out, BASE).read_bytes() == write_feed(out, BASE).read_bytes()


def test_what_others_put_there_is_passed_over(out: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    before = write_feed(out, BASE).read_bytes()
    elsewhere = saved(tmp_path_factory.mktemp("elsewhere"), dt.date(2026, 6, 17)).path
    (out / "260617").symlink_to(elsewhere)
    (out / "260618").mkdir()
    (out / "260618" / "episode.json").write_text("{torn")
    (out / "260619").mkdir()
    (out / "260619" / "episode.json").write_text(json.dumps(episode(dt.date(2026, 6, 18))))
    (out / "260620").write_text("a file")
    for number, wrong in enumerate(([], {"day": 5}, {**episode(dt.date(2026, 6, 21)), "show": []}), start=21):
        (out / f"2606{number}").mkdir()
        (out / f"2606{number}" / "episode.json").write_text(json.dumps(wrong))
    (out / "notes.txt").write_text("mine")
    assert write_feed(out, BASE).read_bytes() == before


def test_a_folder_without_an_episode(tmp_path: Path) -> None:
    with pytest.raises(NoEpisodes) as raised:
        write_feed(tmp_path, BASE)
    assert str(raised.value) == f"{tmp_path} holds no episode"
    assert list(tmp_path.iterdir()) == []


def test_days_that_end_together_are_all_in_it(tmp_path: Path) -> None:
    def end(number: int) -> None:
        saved(tmp_path, dt.date(2026, 6, number))
        write_feed(tmp_path, BASE)

    threads = [threading.Thread(target=end, args=(number,)) for number in range(10, 22)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(feedparser.parse((tmp_path / "feed.xml").read_bytes()).entries) == 12
    assert not list(tmp_path.glob(".writing-*"))
