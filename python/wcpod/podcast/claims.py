"""What a sentence of a script claims in numbers: scores, minutes, dates, times, shares, other numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from wcpod.podcast.han_numbers import DIGIT, NUMBER, precision_of, value_of

Kind = Literal["score", "minute", "date", "year", "clock", "share", "number"]

_SENTENCE = re.compile(r"[^。！？…\n]+[。！？…]*[”』」’）]*")
_N = NUMBER
_PART = "凌晨|清晨|早晨|早上|上午|中午|下午|傍晚|晚上|晚间|夜里|夜裡|深夜|午夜|晚間"
# Words that hold a numeral and say no number.
_IDIOMS = re.compile(
    "万一|萬一|千万|千萬(?!元)|万万|萬萬|万分|萬分|百般|百战百胜|四面八方|三三两两|三三兩兩|七上八下|一五一十|五湖四海|千军万马|千軍萬馬"
    "|千钧一发|千鈞一髮|万众|萬眾|成百上千|成千上万|成千上萬|百分百|一百八十度|九牛二虎|十全十美|十拿九稳|十拿九穩|百感交集|百折不挠"
    "|百折不撓|万无一失|萬無一失|五花八门|五花八門|七嘴八舌|千辛万苦|千辛萬苦|千变万化|千變萬化|三十六计|三十六計|百里挑一"
    "|(?<![积積得拿获獲共有添扣差一二两三四五六七八九])十分(?![之钟鐘])"
)
_ABOUT_BEFORE = re.compile(r"(?:大?约|大?約|将?近|將?近|超过|超過|差不多|不到|上|至少|将近|將近)$")
_ABOUT_AFTER = re.compile(r"(?:多|余|餘|来|來|左右|上下|出头|出頭)")
_CHECKED_FROM = 20
_SMALL_FROM = 3
_MEASURES = re.compile(
    "(?:多|余|餘)?(?:分(?!钟|鐘|之|成|给|給|别|別|为|為|到|在)|球|个进球|個進球|个球|個球|粒|岁|歲|连|連|场|場|张|張|次|人|名|位|届|屆|冠|座|支|国|國|个国家|個國家|轮|輪)"
)


@dataclass(frozen=True, slots=True)
class Claim:
    """One number that a sentence claims.

    Attributes:
        kind: What it is.
        value: Two numbers of a score; month and day (and year before them, if said) of a date; minutes since midnight
            of a time, with a second value where the half of the day is open; else the number.
        text: As it stands in the sentence.
        at: Where it begins in the sentence.
        within: How much more it may be, exclusive: 六万八千多 is 68,000 and up to 999 more.
    """

    kind: Kind
    value: tuple[float, ...]
    text: str
    at: int
    within: int = 1


def sentences_of(script: str) -> Iterator[tuple[int, str]]:
    """Each sentence with the number of its paragraph, from 1."""
    paragraphs = [line for line in script.split("\n") if line.strip()]
    for number, paragraph in enumerate(paragraphs, start=1):
        for found in _SENTENCE.finditer(paragraph):
            if found[0].strip():
                yield number, found[0].strip()


def claims_of(sentence: str) -> list[Claim]:
    """The claims of a sentence, in its order. Small numbers count only before what is counted in a report."""
    text = _IDIOMS.sub(lambda found: "～" * len(found[0]), sentence)
    found: list[Claim] = []
    for pattern, make in _READERS:
        for match in pattern.finditer(text):
            claim = make(match, text)
            if claim is not None:
                found.append(claim)
                text = text[: match.start()] + "～" * len(match[0]) + text[match.end() :]
    return sorted(found, key=lambda claim: claim.at)


def _score(match: re.Match[str], _text: str) -> Claim | None:
    values = value_of(match["a"]), value_of(match["b"])
    if None in values:
        return None
    return Claim("score", (float(values[0] or 0), float(values[1] or 0)), match[0], match.start())


def _date(match: re.Match[str], _text: str) -> Claim | None:
    parts = [value_of(part) for part in (match["y"], match["m"], match["d"]) if part]
    if None in parts:
        return None
    return Claim("date", tuple(float(part or 0) for part in parts), match[0], match.start())


def _year(match: re.Match[str], _text: str) -> Claim | None:
    year = value_of(match["y"])
    return None if year is None else Claim("year", (float(year),), match[0], match.start())


def _minute(match: re.Match[str], _text: str) -> Claim | None:
    minute = value_of(match["n"])
    return None if minute is None else Claim("minute", (float(minute),), match[0], match.start())


def _share(match: re.Match[str], _text: str) -> Claim | None:
    share = value_of(match["n"])
    return None if share is None else Claim("share", (float(share),), match[0], match.start())


def _clock(match: re.Match[str], _text: str) -> Claim | None:
    hour = value_of(match["h"])
    minutes = {"": 0, "整": 0, "半": 30, "一刻": 15, "三刻": 45}.get(match["rest"] or "")
    if minutes is None:
        said = value_of((match["rest"] or "").rstrip("分"))
        minutes = int(said) if said is not None else -1
    if hour is None or not 0 <= hour <= 24 or not 0 <= minutes < 60:
        return None
    part = match["part"]
    values: tuple[int, ...]
    base = int(hour) % 24 * 60 + minutes
    if not part:
        values = (base, (base + 720) % 1440)
    elif part in ("下午", "傍晚", "晚上", "晚间", "晚間", "夜里", "夜裡", "深夜", "午夜", "中午") and hour <= 12:
        noon = part == "中午" and hour >= 10
        night = part not in ("中午", "下午") and hour in (12, 1, 2, 3)
        values = (base % 720 + (720 if noon or not night else 0),)
    else:
        values = (base % 720 if part == "凌晨" else base,)
    return Claim("clock", tuple(float(value) for value in values), match[0], match.start())


def _number(match: re.Match[str], text: str) -> Claim | None:
    said = match["n"]
    value = value_of(said)
    if value is None:
        return None
    after = text[match.end() :]
    small = float(value) < _CHECKED_FROM and isinstance(value, int)
    if small and not (value >= _SMALL_FROM and _MEASURES.match(after)):
        return None
    about = _ABOUT_AFTER.match(after) or _ABOUT_BEFORE.search(text[: match.start()])
    within = precision_of(said) if about else 1
    if about and _ABOUT_BEFORE.search(text[: match.start()]):
        return Claim("number", (float(value) - within + 1,), said, match.start(), 2 * within - 1)
    return Claim("number", (float(value),), said, match.start(), within)


def _percent(match: re.Match[str], text: str) -> Claim | None:
    if match["n"]:
        return _share(match, text)
    return Claim("share", (float(match["p"]),), match[0], match.start())


_MINUTE_BEFORE = "第|[补補][时時]第?|[开開]场[仅刚]?|開場[僅剛]?|[开開]球[仅刚僅剛]?"
_CLOCK_REST = f"整|半|[一三]刻|{_N}分"
# A point of the clock is one only beside a part of the day, the word for time, or minutes: 一点 also means a little.
_CLOCK = rf"(?:(?P<part>{_PART})|(?<=时间)|(?<=時間)|(?={_N}[点點](?:[钟鐘鍾]|{_CLOCK_REST})))"
_READERS = (
    (re.compile(rf"(?P<a>{_N})\s*[比:：-]\s*(?P<b>{_N})(?!分)"), _score),
    (re.compile(rf"(?:(?P<y>{DIGIT}{{4}}|\d{{4}})年)?(?P<m>{_N})月(?P<d>{_N})[日号號]"), _date),
    (re.compile(rf"(?P<y>{DIGIT}{{4}}|\d{{4}})年"), _year),
    (re.compile(rf"(?:{_MINUTE_BEFORE})(?P<n>{_N})分[钟鐘鍾]"), _minute),
    (re.compile(rf"百分之(?P<n>{_N}(?:[点點]{DIGIT}+)?)|(?<![\d.])(?P<p>\d[\d.]*)%"), _percent),
    (re.compile(rf"(?P<n>{_N}[点點]{DIGIT}+)(?![十百千万萬分刻])"), _number),
    (re.compile(rf"{_CLOCK}(?P<h>{_N})[点點](?P<rest>{_CLOCK_REST})?(?!球)"), _clock),
    (re.compile(rf"(?P<n>{_N})"), _number),
)
