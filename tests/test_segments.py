"""`segments.json`: the script cut for a voice."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wcpod.podcast.scripts import Scripts
from wcpod.podcast.segments import pinyin_of, segments_file, segments_of, sentences_of

SCRIPT = "各位听众，早上好！\n\n布雷卡洛、杜阿尔特都进了球；“真精彩。”他说。\n再见"


def texts(script: str) -> list[str]:
    return [segment["text"] for segment in segments_of(script)]


def test_sentences_and_the_pauses_after_them() -> None:
    assert [(segment["paragraph"], segment["text"], segment["pause"]) for segment in segments_of(SCRIPT)] == [
        (1, "各位听众，早上好！", 1.0),
        (2, "布雷卡洛、杜阿尔特都进了球；“真精彩。”", 0.5),
        (2, "他说。", 1.0),
        (3, "再见", 0.0),
    ]


def test_pauses_inside_a_sentence_come_after_their_mark() -> None:
    sentence = segments_of("一、二，三；四：五——六，")[0]
    assert sentence["text"] == "一、二，三；四：五——六，"
    assert [(sentence["text"][pause["at"]], pause["seconds"]) for pause in sentence["pauses"]] == [
        ("、", 0.15),
        ("，", 0.25),
        ("；", 0.4),
        ("：", 0.3),
        ("—", 0.3),
    ]


def test_names_have_a_syllable_for_each_character() -> None:
    [sentence] = segments_of("布雷卡洛传给布雷，葡萄牙队领先。", ["布雷", "布雷卡洛", "葡萄牙", "西班牙"])
    assert sentence["names"] == [
        {"at": 0, "text": "布雷卡洛", "pinyin": ["bu4", "lei2", "ka3", "luo4"]},
        {"at": 6, "text": "布雷", "pinyin": ["bu4", "lei2"]},
        {"at": 9, "text": "葡萄牙", "pinyin": ["pu2", "tao2", "ya2"]},
    ]


@pytest.mark.parametrize(
    ("name", "pinyin"),
    [
        ("哈里·洛", ["ha1", "li3", "·", "luo4"]),
        ("C罗", ["C", "luo2"]),
        ("重庆", ["chong2", "qing4"]),
        ("了", ["le5"]),
    ],
)
def test_pinyin(name: str, pinyin: list[str]) -> None:
    assert pinyin_of(name) == pinyin


def test_the_seconds_are_those_of_the_estimate_of_the_whole() -> None:
    assert segments_of("一" * 260 + "。")[0]["seconds"] == 60.0


def test_the_file() -> None:
    content: dict[str, Any] = json.loads(segments_file(Scripts(SCRIPT, ""), {"day": "2026-06-15"}, ["布雷卡洛"]))
    assert {key: content[key] for key in content if key != "segments"} == {
        "schema_version": 1,
        "day": "2026-06-15",
        "language": "zh-CN",
    }
    assert content["segments"] == segments_of(SCRIPT, ["布雷卡洛"])


@settings(deadline=None)
@given(st.text(alphabet="一二，。！？…”」!?— ", max_size=40))
def test_nothing_of_a_script_is_lost(paragraph: str) -> None:
    kept = "".join(sentences_of(paragraph))
    assert kept.replace(" ", "") == paragraph.replace(" ", "")
    assert [text for text in texts(paragraph) if not text] == []
