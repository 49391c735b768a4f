"""What a script must be before it is saved: long enough, spoken, clean, and the same in both versions.

The check is code, not a model. What it finds goes back to the model as a list.
"""

from __future__ import annotations

import difflib
import functools
import re
from dataclasses import dataclass

from opencc import OpenCC

from wcpod.exceptions import PipelineError
from wcpod.podcast.hanzi import han_characters, han_count, to_traditional
from wcpod.podcast.scripts import Scripts
from wcpod.podcast.show import Show

# What a voice can read as it stands. A show may allow more; digits, Latin letters and signs are not among it.
_SPEAKABLE = re.compile(
    "[\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U000323af〇，。！？：；、“”‘’（）《》〈〉「」『』—…·\n ]"
)
_ADDRESS = re.compile(r"https?:|www\s*\.|[a-z0-9]\.(?:com|org|net|co|uk)(?![a-z])", re.IGNORECASE)
_OPENING, _CLOSING = 160, 120
_SAME_ENOUGH = 0.9
_FOREIGN_SHARE, _FOREIGN_FEW = 0.02, 5
_MOST_SHOWN = 12


class ScriptRejected(PipelineError):
    """The script still breaks the rules after the last try; the message lists what is wrong."""


@dataclass(frozen=True, slots=True)
class ScriptRules:
    """Bounds of a script.

    Attributes:
        shortest: Fewest Han characters.
        longest: Most Han characters.
        retries: How often the model gets its problems back before the run fails.
        greetings: One of these stands near the beginning.
        goodbyes: One of these stands near the end.
        allowed: Characters that may stand besides Han text and Han punctuation.
        sources: Fewest pages that must have been read.
        words: The show's words, simplified and as Taiwan says them.
    """

    shortest: int = 1250
    longest: int = 1400
    retries: int = 2
    greetings: tuple[str, ...] = ("听众", "大家好", "早上好", "早安", "您好", "你好", "欢迎")
    goodbyes: tuple[str, ...] = (
        "再见", "明天见", "下期见", "下次见", "感谢收听", "谢谢收听", "感谢您的收听", "感谢你的收听",
    )  # fmt: skip
    allowed: str = ""
    sources: int = 3
    words: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, show: Show, *, length: tuple[int, int] | None = None) -> ScriptRules:
        """The rules of a show, with another length if one is given."""
        script = show.script
        shortest, longest = length or script.length
        return cls(
            shortest=shortest,
            longest=longest,
            greetings=tuple(script.greetings),
            goodbyes=tuple(script.goodbyes),
            allowed=script.allowed,
            sources=script.sources,
            words=tuple(show.words.items()),
        )


def check_scripts(scripts: Scripts, rules: ScriptRules) -> list[str]:
    """What is wrong with the scripts, one sentence each; empty if nothing is."""
    return [
        *_length_problems(scripts, rules),
        *_form_problems("simplified", scripts.simplified, rules),
        *_form_problems("traditional", scripts.traditional, rules),
        *_frame_problems(scripts.simplified, rules),
        *_character_problems("simplified", scripts.simplified, "t2s"),
        *_character_problems("traditional", scripts.traditional, "s2tw"),
        *_content_problems(scripts, rules),
    ]


def _length_problems(scripts: Scripts, rules: ScriptRules) -> list[str]:
    han = han_count(scripts.simplified)
    if rules.shortest <= han <= rules.longest:
        return []
    return [f"The script has {han} Han characters; it must have {rules.shortest} to {rules.longest}."]


def _form_problems(version: str, script: str, rules: ScriptRules) -> list[str]:
    problems = []
    if odd := sorted(set(_SPEAKABLE.sub("", script)) - set(rules.allowed)):
        shown = " ".join(repr(character)[1:-1] for character in odd[:_MOST_SHOWN])
        problems.append(f"The {version} version holds characters that are not Han text or Han punctuation: {shown}")
    if _ADDRESS.search(script):
        problems.append(f"The {version} version holds an internet address.")
    return problems


def _frame_problems(script: str, rules: ScriptRules) -> list[str]:
    problems = []
    if not any(word in script[:_OPENING] for word in rules.greetings):
        problems.append("The script does not open with a greeting.")
    if not any(word in script[-_CLOSING:] for word in rules.goodbyes):
        problems.append("The script does not close with a goodbye.")
    return problems


def _character_problems(version: str, script: str, conversion: str) -> list[str]:
    converted = _engine(conversion).convert(script)
    wrong = sorted({mine for mine, theirs in zip(script, converted, strict=False) if mine != theirs})
    count = sum(mine != theirs for mine, theirs in zip(script, converted, strict=False))
    if len(converted) != len(script) or count <= max(_FOREIGN_FEW, _FOREIGN_SHARE * len(script)):
        return []
    return [f"The {version} version holds characters of the other one: {' '.join(wrong[:_MOST_SHOWN])}"]


def _content_problems(scripts: Scripts, rules: ScriptRules) -> list[str]:
    expected = _paragraphs(to_traditional(scripts.simplified, dict(rules.words)))
    found = _paragraphs(scripts.traditional)
    if len(expected) != len(found):
        return [f"The simplified version has {len(expected)} paragraphs, the traditional one {len(found)}."]
    return [
        f"Paragraph {number} differs in content between the two versions: {theirs[:_MOST_SHOWN]}…"
        for number, (ours, theirs) in enumerate(zip(expected, found, strict=True), start=1)
        if not _same(ours, theirs)
    ]


def _paragraphs(text: str) -> list[str]:
    return [paragraph for paragraph in text.split("\n") if paragraph.strip()]


def _same(one: str, other: str) -> bool:
    """Whether two paragraphs are the same but for the choice of a variant or a word here and there."""
    plain_one, plain_other = (han_characters(_engine("t2s").convert(text)) for text in (one, other))
    return difflib.SequenceMatcher(None, plain_one, plain_other, autojunk=False).ratio() >= _SAME_ENOUGH


@functools.cache
def _engine(conversion: str) -> OpenCC:
    return OpenCC(conversion)
