"""What a sentence claims in numbers."""

from __future__ import annotations

import pytest

from wcpod.podcast.claims import claims_of, sentences_of


@pytest.mark.parametrize(
    ("sentence", "claims"),
    [
        ("葡萄牙队以二比一取胜。", [("score", (2, 1))]),
        ("第八十九分钟进球，补时第三分钟再进一球。", [("minute", (89,)), ("minute", (3,))]),
        ("开场五分钟就进球，打了九十分钟。", [("minute", (5,)), ("number", (90,))]),
        ("七月十九日决赛。", [("date", (7, 19))]),
        ("七月十九号决赛。", [("date", (7, 19))]),
        ("二零二六年六月十五日，星期一。", [("date", (2026, 6, 15))]),
        ("一九八六年的冠军。", [("year", (1986,))]),
        ("八万两千五百名观众。", [("number", (82_500,))]),
        ("同积三分。", [("number", (3,))]),
        ("北京时间第二天上午十点。", [("clock", (600,))]),
        ("当地时间晚上八点半。", [("clock", (1230,))]),
        ("中午十二点，凌晨零点十五分。", [("clock", (720,)), ("clock", (15,))]),
        ("下午三点一刻。", [("clock", (915,))]),
        ("控球率百分之五十五。", [("share", (55,))]),
        ("球门宽七点三二米。", [("number", (7.32,))]),
        ("他进了2个球，控球55%。", [("share", (55,))]),
        ("2-1，第89分钟，68,311人。", [("score", (2, 1)), ("minute", (89,)), ("number", (68_311,))]),
        ("第八十六分鐘，八萬兩千五百人。", [("minute", (86,)), ("number", (82_500,))]),
    ],
)
def test_claims(sentence: str, claims: list[tuple[str, tuple[float, ...]]]) -> None:
    assert [(claim.kind, claim.value) for claim in claims_of(sentence)] == claims


@pytest.mark.parametrize(
    "sentence",
    [
        "十分精彩，千万别走开，万一输了呢。",
        "有一点可惜，早一点回来，这两点要记住。",
        "五条消息，两支球队，一个进球，第一场。",
        "他一度落后，一点也不慌。",
        "主罚点球，三三两两的球迷。",
    ],
)
def test_words_that_claim_nothing(sentence: str) -> None:
    assert claims_of(sentence) == []


def test_about_so_many_is_a_range() -> None:
    (more,) = claims_of("六万八千多名观众")
    assert (more.value, more.within) == ((68_000.0,), 1000)
    (nearly,) = claims_of("将近七万名观众")
    assert nearly.value[0] <= 69_000 < nearly.value[0] + nearly.within


def test_a_claim_is_found_where_it_stands() -> None:
    sentence = "在第八十一分钟，他把比分改成二比一。"
    assert [sentence[claim.at :][: len(claim.text)] for claim in claims_of(sentence)] == ["第八十一分钟", "二比一"]


def test_sentences() -> None:
    assert list(sentences_of("甲。乙！“丙？”\n\n丁")) == [(1, "甲。"), (1, "乙！"), (1, "“丙？”"), (2, "丁")]
