"""The editor: compares a script with the pages that were read and with the show's facts. Code, and no model.

What it cannot find goes back to the model as a list; what it found stands in `episode.json`, sentence by sentence.
It knows names by the show's list, and numbers by their kind (`claims`). It does not understand what is said of them.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from wcpod.podcast.claims import Claim, claims_of, sentences_of
from wcpod.podcast.evidence import Evidence, FactEvidence, ReadPage, han_forms, named
from wcpod.podcast.script_check import ScriptRejected
from wcpod.podcast.scripts import Scripts
from wcpod.podcast.show import Name, Show

_SHOWN = 60
_MOST_REASONS = 10
# Words with 队 that name no team.
_NO_TEAM = re.compile(
    "(?:球|两|兩|各|主|客|全|国家|國家|代表|参赛|參賽|军|軍|乐|樂|排|预备|預備|青年|啦啦|强|強|弱|新|四|三|八|医疗|醫療|一|每|该|該|同|本|我|归|歸|入"
    "|离|離|带|帶|领|領|支|半|哪|对|對|他们|他們|种子|種子|冠军|冠軍|升班马|升班馬|卫冕|衛冕|东道主|東道主|黑马|黑馬|救援|大|小|女|男|老|降级|豪门)[队隊]"
    "|[队隊](?:员|員|长|長|友|伍|医|醫|形|列|史|内|內|里|裡|服|徽)"
)
_TEAM = re.compile("[\u4e00-\u9fff]{1,8}?[队隊]")
_VERDICT = re.compile("[赢贏胜勝负負输輸败敗克]|不敌|不敵|拿下|取胜|击败|横扫|力压")


class NotEnoughSources(ScriptRejected):
    """Too few pages were read to write from; the message says which fetches went wrong."""


@dataclass(frozen=True, slots=True)
class Sourced:
    """A sentence with numbers or names in it, and where they come from.

    Attributes:
        paragraph: From 1.
        text: The sentence, from the simplified version.
        claims: The numbers in it that were looked for, as they stand there.
        pages: Numbers of the pages that give them, from 1.
        facts: The show's facts that give them.
    """

    paragraph: int
    text: str
    claims: tuple[str, ...]
    pages: tuple[int, ...]
    facts: tuple[str, ...]


class Editor:
    """Reads scripts of one episode."""

    def __init__(self, show: Show, day: dt.date, pages: Sequence[ReadPage]) -> None:
        self.pages = list(pages)
        self._show, self._day = show, day
        self._evidence = [Evidence(page.text, show, day) for page in self.pages]
        self._facts = [FactEvidence(fact, show) for fact in show.facts_on(day)]
        self._own = claims_of(show.out_of_season(day) or "")
        self._names = [name for name in show.names if name.kind != "word"]
        self._named = frozenset[str]().union(*(page.names for page in self._evidence))

    def problems(self, scripts: Scripts) -> list[str]:
        """What in the two versions no source gives, one sentence each."""
        found = self._version_problems("", scripts.simplified, traditional=False)
        ours = [(claim.kind, claim.value) for _, s in sentences_of(scripts.simplified) for claim in claims_of(s)]
        theirs = [(claim.kind, claim.value) for _, s in sentences_of(scripts.traditional) for claim in claims_of(s)]
        if ours != theirs:
            found.append("The numbers of the two versions are not the same, one after the other.")
        for problem in self._version_problems("In the traditional version: ", scripts.traditional, traditional=True):
            if problem.removeprefix("In the traditional version: ") not in found:
                found.append(problem)
        return found

    def sourced(self, script: str) -> list[Sourced]:
        """Each sentence of the simplified version that holds a number which was looked for, with its sources."""
        result = []
        for paragraph, sentence, teams in self._walk(script, traditional=False):
            claims = [claim for claim in self._claims(sentence) if not self._of_the_day(claim)]
            if not claims:
                continue
            pages: list[int] = []
            facts: list[str] = []
            for claim in claims:
                giving = self._giving(claim, teams)
                if not set(giving) & set(pages):
                    pages += giving[:1]
                if not giving:
                    facts += [fact.fact.text for fact in self._facts if fact.gives(claim)][:1]
            result.append(
                Sourced(
                    paragraph,
                    sentence,
                    tuple(claim.text for claim in claims),
                    tuple(sorted(number + 1 for number in set(pages))),
                    tuple(dict.fromkeys(facts)),
                )
            )
        return result

    def record(self, script: str, *, required: int, samples: bool) -> dict[str, Any]:
        """For `episode.json`: what was read, and where each sentence with a number comes from."""
        return {
            "sources_required": required,
            "samples": samples,
            "pages": [
                {"number": number, "url": page.url, "title": page.title, "sha256": page.sha256}
                for number, page in enumerate(self.pages, start=1)
            ],
            "sentences": [
                {
                    "paragraph": sourced.paragraph,
                    "text": sourced.text,
                    "claims": list(sourced.claims),
                    "pages": list(sourced.pages),
                    "facts": list(sourced.facts),
                }
                for sourced in self.sourced(script)
            ],
        }

    def _version_problems(self, prefix: str, script: str, *, traditional: bool) -> list[str]:
        problems = []
        for _, sentence, teams in self._walk(script, traditional=traditional):
            quoted = sentence if len(sentence) <= _SHOWN else f"{sentence[:_SHOWN]}…"
            problems += [f"{prefix}{what} (in: {quoted})" for what in self._sentence(sentence, teams, traditional)]
        return list(dict.fromkeys(problems))

    def _walk(self, script: str, *, traditional: bool) -> list[tuple[int, str, list[Name]]]:
        """Paragraph, sentence, and the teams that it is about: its own, or else those last named in its paragraph."""
        walked: list[tuple[int, str, list[Name]]] = []
        about: list[Name] = []
        last = 0
        for paragraph, sentence in sentences_of(script):
            own = [name for _, name in named(sentence, self._names, traditional=traditional) if name.kind == "team"]
            about = own or (about if paragraph == last else [])
            last = paragraph
            walked.append((paragraph, sentence, _once(about)))
        return walked

    def _sentence(self, sentence: str, teams: list[Name], traditional: bool) -> list[str]:
        problems = []
        for name in _once([name for _, name in named(sentence, self._names, traditional=traditional)]):
            if name.simplified not in self._named and not any(fact.speaks_of(name, sentence) for fact in self._facts):
                form = name.traditional if traditional else name.simplified
                problems.append(f"No page that was read names {form} ({name.pages[0]})")
        for unknown in self._unknown_teams(sentence, traditional):
            problems.append(f"{unknown} is not among the names of the show, so no page can be found for it")
        for claim in self._claims(sentence):
            if not (self._of_the_day(claim) or self._fact_gives(claim) or self._giving(claim, teams)):
                problems.append(_not_given(claim, teams))
            elif claim.kind == "score" and self._turned_round(claim, sentence, traditional):
                problems.append(f"The score {claim.text} is the wrong way round")
        return problems

    def _claims(self, sentence: str) -> list[Claim]:
        title = (self._show.title.simplified, self._show.title.traditional)
        for text in title:
            sentence = sentence.replace(text, "～" * len(text))
        return claims_of(sentence)

    def _of_the_day(self, claim: Claim) -> bool:
        """Whether it is the day's own date, or the show's own words about its season."""
        day = (float(self._day.year), float(self._day.month), float(self._day.day))
        if claim.kind == "date" and day[-len(claim.value) :] == claim.value:
            return True
        if claim.kind == "year" and claim.value == day[:1]:
            return True
        return any(own.kind == claim.kind and own.value[-len(claim.value) :] == claim.value for own in self._own)

    def _fact_gives(self, claim: Claim) -> bool:
        return any(fact.gives(claim) for fact in self._facts)

    def _giving(self, claim: Claim, teams: list[Name]) -> list[int]:
        """The pages that give the claim and speak of what its sentence is about, those that name most of it first."""
        wanted = frozenset(team.simplified for team in teams)
        giving = []
        for number, page in enumerate(self._evidence):
            shared = wanted & page.names
            if not (page.gives_score(claim, wanted) if claim.kind == "score" else page.gives(claim)):
                continue
            if wanted and not shared:
                continue
            giving.append((-len(shared), number))
        return [number for _, number in sorted(giving)]

    def _turned_round(self, claim: Claim, sentence: str, traditional: bool) -> bool:
        """Whether a sentence that says who won or lost gives the score to the wrong side."""
        teams = [
            (at, name) for at, name in named(sentence, self._names, traditional=traditional) if name.kind == "team"
        ]
        both = _once([name for _, name in teams])
        before = [name for at, name in teams if at < claim.at]
        if len(both) != 2 or not before or not _VERDICT.search(sentence):
            return False
        subject = before[-1]
        other = both[0] if both[1] == subject else both[1]
        speaking = [page for page in self._evidence if (subject.simplified, other.simplified) in page.pairs]
        return bool(speaking) and all(
            page.turned_round(claim, subject.simplified, other.simplified) for page in speaking
        )

    def _unknown_teams(self, sentence: str, traditional: bool) -> list[str]:
        known = {form for name in self._show.names for form in (han_forms(name) if traditional else (name.simplified,))}
        text = _NO_TEAM.sub(lambda found: "～" * len(found[0]), sentence)
        for form in sorted(known, key=len, reverse=True):
            text = text.replace(f"{form}队", "～").replace(f"{form}隊", "～")
        return [found[0] for found in _TEAM.finditer(text)]


def sources_problem(pages: Sequence[ReadPage], required: int, failed: Sequence[tuple[str, str]] = ()) -> str | None:
    """What is wrong with the number of pages that say something, and why; None if there are enough.

    Args:
        failed: Address and reason of each fetch that gave no page.
    """
    readable = sum(page.says_something for page in pages)
    if readable >= required:
        return None
    count = f"{readable or 'none'} with something to say {'was' if readable < 2 else 'were'}"
    text = f"the show needs {required} pages as sources, and {count} read"
    reasons = [f"- {url}: {reason}" for url, reason in dict(failed).items()][:_MOST_REASONS]
    return "\n".join([f"{text}; these fetches failed:", *reasons]) if reasons else text


def _once(names: list[Name]) -> list[Name]:
    return list({name.simplified: name for name in names}.values())


def _not_given(claim: Claim, teams: list[Name]) -> str:
    kinds = {"score": "the score", "minute": "the minute", "date": "the date", "year": "the year", "clock": "the time"}
    what = f"{kinds.get(claim.kind, 'the number')} {claim.text} ({_in_digits(claim)})"
    about = f" that names {' and '.join(team.pages[0] for team in teams)}" if teams else ""
    return f"No page{about}, and no fact of the show, gives {what}"


def _in_digits(claim: Claim) -> str:
    if claim.kind == "clock":
        return " or ".join(f"{int(value) // 60:02}:{int(value) % 60:02}" for value in claim.value)
    joined = {"score": "-", "date": "-"}.get(claim.kind, "")
    digits = joined.join(f"{value:g}" for value in claim.value)
    return f"{digits}%" if claim.kind == "share" else digits
