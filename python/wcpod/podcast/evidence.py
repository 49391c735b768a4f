"""What a page says, in the terms of `claims`: its scores, minutes, dates, times and numbers, and the names in it."""

from __future__ import annotations

import datetime as dt
import functools
import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from wcpod.podcast.claims import Claim, claims_of
from wcpod.podcast.hanzi import han_count, to_traditional
from wcpod.podcast.show import Fact, Name, Show

_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_MONTH = {name[:3].lower(): number for number, name in enumerate(_MONTHS.split("|"), start=1)}
_ANY_MONTH = rf"(?P<m>{_MONTHS}|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.?"
# fmt: off
_ONES = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
]
_ORDINALS = [
    "zeroth", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
    "eleventh", "twelfth",
]
# fmt: on
_WORDS = {word: value for words in (_ONES, _ORDINALS) for value, word in enumerate(words)}
_SCALES = {"thousand": 10**3, "million": 10**6, "m": 10**6, "billion": 10**9, "bn": 10**9, "k": 10**3}

_SCORE = re.compile(r"(?<![\d\-–.:/])(\d{1,3})\s?[-–—:]\s?(\d{1,3})(?![\d\-–:/]|\.\d)")
_MINUTE = re.compile(
    r"(?<![\d,.\-+])(\d{1,3})(?:\s?\+\s?(\d{1,2}))?"
    r"(?=\s?['’′]|(?:st|nd|rd|th)?[\s-]min(?:ute)?s?\b|\s?mins?\b|,(?!\d))|\bminute (\d{1,3})\b",
)
_WORD_MINUTE = re.compile(rf"\b({'|'.join(_WORDS)})[\s-](?:minutes?)\b", re.IGNORECASE)
_DAY_MONTH = re.compile(
    rf"\b(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? {_ANY_MONTH}(?:,? (?P<y>\d{{4}}))?", re.IGNORECASE
)
_MONTH_DAY = re.compile(rf"\b{_ANY_MONTH} (?P<d>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (?P<y>\d{{4}}))?", re.IGNORECASE)
_ISO = re.compile(r"\b(?P<y>\d{4})-(?P<m>\d{2})-(?P<d>\d{2})(?!\d)")
_HAN_DATE = re.compile(r"(?:(?P<y>\d{4})年)?(?P<m>\d{1,2})月(?P<d>\d{1,2})[日号號]")
_YEAR = re.compile(r"(?<!\d)(1[89]\d\d|20\d\d)(?!\d)")
_CLOCK = re.compile(r"(?<![\d.:])([01]?\d|2[0-3])[:.]([0-5]\d)(?![\d.:])\s*([ap]\.?m\b)?", re.IGNORECASE)
_WHOLE_HOUR = re.compile(r"(?<![\d.:])(1[0-2]|[1-9])\s?([ap]\.?m\b)", re.IGNORECASE)
_SHARE = re.compile(r"(?<![\d.])(\d+(?:\.\d+)?)\s?(?:%|per ?cent\b)")
_NUMBER = re.compile(
    r"(?<![\w.,])(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?(?:\s?(thousand|million|billion|bn|m|k)\b)?(?![\d])", re.IGNORECASE
)
_SHORTEST_PAGE = 100
_FEW_RESULTS = 2
_ALIKE = 0.25


@dataclass(frozen=True, slots=True)
class ReadPage:
    """A page that was fetched in the run, with its text."""

    url: str
    title: str
    sha256: str
    text: str

    @property
    def says_something(self) -> bool:
        """Whether there is enough text in it to be a source."""
        return len(self.text.strip()) >= _SHORTEST_PAGE


class Evidence:
    """What one page gives, on the day of the episode and in the time zones of the show."""

    def __init__(self, text: str, show: Show, day: dt.date) -> None:
        self.text = text
        self._show, self._day = show, day
        self.scores = {(float(a), float(b)) for a, b in _SCORE.findall(text)}
        self.minutes = set(_minutes(text))
        self.dates = set(_dates(text))
        self.years = {float(year) for year in _YEAR.findall(text)} | {date[0] for date in self.dates if len(date) == 3}
        self.clocks = set(_clocks(text))
        self.shares = {float(share) for share in _SHARE.findall(text)}
        self.numbers = sorted(set(_numbers(text)))
        self.pairs: dict[tuple[str, str], set[tuple[float, float]]] = {}
        self._read_pairs()

    @functools.cached_property
    def names(self) -> frozenset[str]:
        """The simplified forms of the show's names that the page spells."""
        return frozenset(name.simplified for name in self._show.names if _spelled(name, self.text))

    def gives(self, claim: Claim) -> bool:
        """Whether the page says what the claim says."""
        match claim.kind:
            case "score":
                return claim.value in self.scores or claim.value[::-1] in self.scores
            case "minute":
                return claim.value[0] in self.minutes
            case "date":
                return self._has_date(claim.value)
            case "year":
                return claim.value[0] in self.years
            case "clock":
                return any(value in self.clocks or value in self._told_clocks for value in claim.value)
            case "share":
                return claim.value[0] in self.shares
            case _:
                return any(0 <= number - claim.value[0] < claim.within for number in self.numbers)

    def gives_score(self, claim: Claim, teams: frozenset[str]) -> bool:
        """Whether it gives the score to these teams. Where many results stand on one page, they must stand together."""
        if not (self.gives(claim) and teams <= self.names):
            return False
        if len({frozenset(pair) for pair in self.pairs}) <= _FEW_RESULTS:
            return True
        for line in self.text.splitlines():
            own = {(float(a), float(b)) for a, b in _SCORE.findall(line)}
            if claim.value in own or claim.value[::-1] in own:
                spelled = {name.simplified for name in self._show.names if _spelled(name, line)}
                if teams <= spelled:
                    return True
        return any(claim.value in scores for pair, scores in self.pairs.items() if teams and teams <= set(pair))

    def turned_round(self, claim: Claim, subject: str, other: str) -> bool:
        """Whether the page gives this score to these two the other way round, and nowhere this way."""
        given = self.pairs.get((subject, other), set())
        return claim.value not in given and claim.value[::-1] in given and claim.value[0] != claim.value[1]

    def _has_date(self, value: tuple[float, ...]) -> bool:
        told = self.dates | self._told_dates
        short = {date[-2:] for date in told}
        return value in told or (value[-2:] in short and (len(value) == 2 or value[0] in self.years))

    @functools.cached_property
    def _told(self) -> list[dt.datetime]:
        """The page's times on its dates and on the day of the episode, as the listeners' clocks show them."""
        days = {self._day}
        for date in self.dates:
            year = int(date[0]) if len(date) == 3 else self._day.year
            try:
                days.add(dt.date(year, int(date[-2]), int(date[-1])))
            except ValueError:
                continue
        listeners = ZoneInfo(self._show.clock.listeners)
        return [
            dt.datetime.combine(day, dt.time(int(clock) // 60, int(clock) % 60), ZoneInfo(place)).astimezone(listeners)
            for place in self._show.clock.places
            for day in sorted(days)[:20]
            for clock in sorted(self.clocks)[:50]
        ]

    @functools.cached_property
    def _told_clocks(self) -> frozenset[float]:
        return frozenset(float(moment.hour * 60 + moment.minute) for moment in self._told)

    @functools.cached_property
    def _told_dates(self) -> frozenset[tuple[float, ...]]:
        return frozenset((float(moment.month), float(moment.day)) for moment in self._told)

    def _read_pairs(self) -> None:
        """Scores with the two names beside them: `A 2-1 B` and `A 2, B 1`."""
        spellings = {
            spelling: name.simplified for name in self._show.names if name.kind == "team" for spelling in name.pages
        }
        if not spellings:
            return
        any_name = "|".join(sorted(map(re.escape, spellings), key=len, reverse=True))
        for pattern in (
            rf"(?<!\w)({any_name})\s+(\d{{1,3}})\s?[-–—]\s?(\d{{1,3}})\s+({any_name})(?!\w)",
            rf"(?<!\w)({any_name})\s+(\d{{1,3}}),?\s+({any_name})\s+(\d{{1,3}})(?![\w-])",
        ):
            for found in re.finditer(pattern, self.text):
                first, a, third, fourth = found.groups()
                b, second = (third, fourth) if third.isdigit() else (fourth, third)
                score = (float(a), float(b))
                self.scores.add(score)
                self.pairs.setdefault((spellings[first], spellings[second]), set()).add(score)
                self.pairs.setdefault((spellings[second], spellings[first]), set()).add(score[::-1])


class FactEvidence:
    """What a fact of the show gives."""

    def __init__(self, fact: Fact, show: Show) -> None:
        self.fact = fact
        self._claims = claims_of(fact.text)
        self._pairs = _pairs(fact.text) | _pairs(to_traditional(fact.text))
        self.names = frozenset(name.simplified for name in show.names if name.simplified in fact.text)

    def speaks_of(self, name: Name, sentence: str) -> bool:
        """Whether the sentence names someone of this fact, and says of him about what the fact says."""
        if name.simplified not in self.names:
            return False
        said = _pairs(sentence, (name.simplified, *han_forms(name)))
        return len(said & self._pairs) >= _ALIKE * len(said)

    def gives(self, claim: Claim) -> bool:
        """Whether the fact says what the claim says."""
        for own in self._claims:
            if own.kind == claim.kind and own.value[-len(claim.value) :] == claim.value:
                return True
            if claim.kind == "year" and own.kind == "date" and len(own.value) == 3 and own.value[0] == claim.value[0]:
                return True
        return False


def named(text: str, names: Iterable[Name], *, traditional: bool = False) -> list[tuple[int, Name]]:
    """The names in a Han text with their places, longest first where they overlap."""
    forms = {form: name for name in names for form in (han_forms(name) if traditional else (name.simplified,))}
    if not forms:
        return []
    pattern = "|".join(sorted(map(re.escape, forms), key=len, reverse=True))
    return [(found.start(), forms[found[0]]) for found in re.finditer(pattern, text)]


def han_forms(name: Name) -> tuple[str, ...]:
    """What a name may be in a traditional version: the usual form, or the simplified one, converted or not."""
    return tuple(dict.fromkeys((name.traditional, to_traditional(name.simplified), name.simplified)))


def _pairs(text: str, without: Iterable[str] = ()) -> set[str]:
    """The pairs of neighbouring Han characters, but for those of some words."""
    for word in without:
        text = text.replace(word, "，")
    return {pair for pair in map("".join, itertools.pairwise(text)) if han_count(pair) == 2}


def _spelled(name: Name, text: str) -> bool:
    for spelling in name.pages:
        flags = re.IGNORECASE if len(spelling) > 3 else 0
        if re.search(rf"(?<!\w){re.escape(spelling)}(?!\w)", text, flags):
            return True
    return name.simplified in text or name.traditional in text


def _minutes(text: str) -> Iterable[float]:
    for minute, added, other in _MINUTE.findall(text):
        yield float(minute or other)
        if added:
            yield float(added)
            yield float(minute) + float(added)
    for word in _WORD_MINUTE.findall(text):
        yield float(_WORDS[word.lower()])


def _dates(text: str) -> Iterable[tuple[float, ...]]:
    for pattern in (_DAY_MONTH, _MONTH_DAY, _ISO, _HAN_DATE):
        for found in pattern.finditer(text):
            month = float(found["m"]) if found["m"].isdigit() else float(_MONTH[found["m"][:3].lower()])
            date = (month, float(found["d"]))
            yield (float(found["y"]), *date) if found["y"] else date


def _clocks(text: str) -> Iterable[float]:
    for hour, minute, half in _CLOCK.findall(text):
        hours = int(hour)
        if half:
            hours = hours % 12 + (12 if half[0].lower() == "p" else 0)
        yield float(hours * 60 + int(minute))
    for hour, half in _WHOLE_HOUR.findall(text):
        yield float((int(hour) % 12 + (12 if half[0].lower() == "p" else 0)) * 60)


def _numbers(text: str) -> Iterable[float]:
    for whole, part, scale in _NUMBER.findall(text):
        number = float(whole.replace(",", "") + part)
        yield number
        if scale:
            yield round(number * _SCALES[scale.lower()], 6)
    for word in re.findall(r"[A-Za-z]+", text):
        if (value := _WORDS.get(word.lower())) is not None:
            yield float(value)
    for claim in claims_of(text) if re.search("[\u4e00-\u9fff]", text) else ():
        yield from claim.value
