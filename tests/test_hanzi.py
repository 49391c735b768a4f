"""Simplified to traditional, as a listener in Taiwan expects it, and never worse than OpenCC alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opencc import OpenCC

from wcpod.podcast.hanzi import han_count, to_traditional
from wcpod.podcast.show import default_show

HERE = Path(__file__).parent
CASES = [case for name in ("zh", "zh-2") for case in json.loads((HERE / "cases" / f"{name}.json").read_text("utf-8"))]


def table(name: str) -> list[tuple[str, list[str]]]:
    """Pairs of a table in `tests/conversion`: the simplified text, and each right form of it."""
    lines = (HERE / "conversion" / f"{name}.tsv").read_text("utf-8").splitlines()
    return [(line.split("\t")[0], line.split("\t")[1].split("|")) for line in lines if not line.startswith("#")]


SENTENCES, PHRASES = table("sentences"), table("phrases")


@pytest.mark.parametrize(("simplified", "traditional"), [pytest.param(*pair, id=name) for name, *pair in CASES])
def test_shared_cases(simplified: str, traditional: str) -> None:
    assert to_traditional(simplified) == traditional


@pytest.mark.parametrize(("simplified", "right"), SENTENCES + PHRASES)
def test_sentences_and_phrases(simplified: str, right: list[str]) -> None:
    assert to_traditional(simplified) in right


def test_opencc_alone_is_right_less_often_on_each_set() -> None:
    plain = OpenCC("s2twp").convert
    for name, cases in {"sentences": SENTENCES, "phrases": PHRASES}.items():
        right = sum(plain(simplified) in forms for simplified, forms in cases)
        assert right < 0.9 * len(cases), f"{name}: OpenCC alone has {right} of {len(cases)}: the set shows nothing"


def test_two_hundred_sentences_none_of_them_twice() -> None:
    simplified = [text for text, _ in SENTENCES]
    assert len(simplified) == len(set(simplified)) >= 200


def test_words_of_a_topic_win_where_they_stand_whole() -> None:
    words = {"点球": "十二碼", "点球大战": "PK大戰", "墨西哥城": "墨西哥市", "布雷卡洛": "布雷卡羅"}
    assert to_traditional("点球大战之前的点球", words) == "PK大戰之前的十二碼"
    assert to_traditional("布雷卡洛在墨西哥城罚进点球", words) == "布雷卡羅在墨西哥市罰進十二碼"
    assert to_traditional("在墨西哥城罚进点球") == "在墨西哥城罰進點球"


def test_a_word_of_a_topic_does_not_begin_inside_another_word() -> None:
    assert to_traditional("防范巴西队，规范德国队", {"范巴": "X", "范德": "X"}) == "防範巴西隊，規範德國隊"
    assert to_traditional("皇马里程碑", {"马里": "X"}) == "皇馬里程碑"


@pytest.mark.parametrize(
    ("simplified", "traditional"),
    [
        ("点球大战之前的点球", "PK大戰之前的十二碼"),
        ("任意球破门，进入加时赛", "自由球破門，進入延長賽"),
        ("揭幕战在墨西哥城", "開幕戰在墨西哥市"),
        ("休斯敦和休斯敦体育场", "休士頓和休士頓體育場"),
        ("国际足联的视频助理裁判", "國際足總的影像助理裁判"),
        ("雷米特杯和大力神杯", "雷米特盃和大力神盃"),
        ("布雷卡洛和埃查里", "布雷卡洛和埃查里"),
        ("沙特队与马里队", "沙烏地阿拉伯隊與馬利隊"),
    ],
)
def test_the_words_of_a_show(simplified: str, traditional: str) -> None:
    assert to_traditional(simplified, default_show().words) == traditional


def test_a_whole_paragraph() -> None:
    simplified = (
        "各位听众，欢迎回来。昨晚的揭幕战里，墨西哥队的后卫被发现越位在先，裁判看了视频之后取消了进球。\n\n"
        "下半场，范戴克头球攻门，皮球只差一点；门将发挥神勇，里面的观众都松了一口气。最后比分是1比0，第90+3分钟一锤定音。"
    )
    traditional = (
        "各位聽眾，歡迎回來。昨晚的揭幕戰裡，墨西哥隊的後衛被發現越位在先，裁判看了影片之後取消了進球。\n\n"
        "下半場，范戴克頭球攻門，皮球只差一點；門將發揮神勇，裡面的觀眾都鬆了一口氣。最後比分是1比0，第90+3分鐘一錘定音。"
    )
    assert to_traditional(simplified) == traditional


@pytest.mark.parametrize("text", ["", "Messi 2-1\n\n```\n", "繁體已經是繁體", " \t\n", "🏆", "a_b·c"])
def test_what_needs_no_conversion_stays(text: str) -> None:
    assert to_traditional(text) == text


@settings(deadline=None)
@given(st.text(alphabet=st.characters(exclude_categories=["Cs", "Lo"]), max_size=40))
def test_what_is_not_han_stays(text: str) -> None:
    assert to_traditional(text) == text


@settings(deadline=None)
@given(st.text(alphabet="只里于范系杯在线自制防马德，。 \n·ab1", max_size=30))
def test_any_order_of_the_characters_with_rules_keeps_the_length(text: str) -> None:
    words = {"马德": "馬德"}
    assert len(to_traditional(text, words)) == len(to_traditional(text, words).strip()) + len(text) - len(text.strip())
    assert len(to_traditional(text)) == len(text)


def test_only_han_characters_count() -> None:
    assert han_count("二比一，A组 3-1！\n《赛后》") == 6
