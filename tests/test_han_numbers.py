"""Numbers as Mandarin speaks them."""

from __future__ import annotations

import pytest

from wcpod.podcast.han_numbers import precision_of, value_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("零", 0), ("十", 10), ("十五", 15), ("二十", 20), ("八十九", 89), ("一百零四", 104), ("一百二", 120),
        ("一百一十二", 112), ("一千零一", 1001), ("三千五", 3500), ("六万八千", 68_000),
        ("八万两千五百", 82_500), ("八万五", 85_000), ("十二万", 120_000), ("一亿三千万", 130_000_000),
        ("二零二六", 2026), ("一九八六", 1986), ("二〇二六", 2026), ("两", 2), ("七点三二", 7.32),
        ("零点五", 0.5), ("八萬兩千五百", 82_500), ("68,311", 68_311), ("12", 12),
    ],
)  # fmt: skip
def test_numbers(text: str, value: float) -> None:
    assert value_of(text) == value


@pytest.mark.parametrize("text", ["", "一零百", "百十千", "零百", "好", "三点", "点五", "十百", "万"])
def test_what_is_no_number(text: str) -> None:
    assert value_of(text) is None


@pytest.mark.parametrize("number", [*range(1200), 10_010, 10_500, 68_311, 100_001, 999_999, 12_345_678, 90_000_009])
def test_every_number_is_read_as_it_is_written(number: int) -> None:
    assert value_of(_written(number)) == number


def _written(value: int) -> str:
    """Another writer, by the book: a zero for each gap, no short forms."""
    if value == 0:
        return "零"
    groups = []
    while value:
        value, group = divmod(value, 10_000)
        groups.append(group)
    text = ""
    for at in range(len(groups) - 1, -1, -1):
        group = groups[at]
        if group == 0:
            continue
        part, gap = "", False
        for unit, word in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
            digit = group // unit % 10
            if digit:
                part += ("零" if gap and part else "") + "零一二三四五六七八九"[digit] + word
            gap = digit == 0
        text += ("零" if text and group < 1000 else "") + part + ["", "万", "亿"][at]
    return text


@pytest.mark.parametrize(
    ("text", "place"), [("六万八千", 1000), ("八万两千五百", 100), ("七万", 10_000), ("二零二零", 1)]
)
def test_how_exact_a_number_is(text: str, place: int) -> None:
    assert precision_of(text) == place
