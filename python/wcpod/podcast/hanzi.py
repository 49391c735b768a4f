"""Simplified to traditional characters as a listener in Taiwan expects them.

OpenCC (`s2twp`: Taiwan's characters and words) does the work. Where its longest-match rule cuts a sentence in the
wrong place, or the vocabulary of football differs, `hanzi_phrases.tsv` beside this file decides.
"""

from __future__ import annotations

import functools
import re
from importlib import resources

from opencc import OpenCC

_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af〇]")


def to_traditional(text: str) -> str:
    """`text` in traditional characters with Taiwan's vocabulary. Anything but Han text stays as it is."""
    phrases, pattern = _phrases()
    pieces: list[str] = []
    position = 0
    for found in pattern.finditer(text):
        pieces.append(_convert(text[position : found.start()]))
        pieces.append(phrases[found[0]])
        position = found.end()
    pieces.append(_convert(text[position:]))
    return "".join(pieces)


def han_count(text: str) -> int:
    """How many Han characters `text` holds; punctuation, digits and letters do not count."""
    return len(han_characters(text))


def han_characters(text: str) -> str:
    """The Han characters of `text`, and nothing else of it."""
    return "".join(_HAN.findall(text))


def _convert(text: str) -> str:
    return _engine().convert(text) if text else ""


@functools.cache
def _engine() -> OpenCC:
    return OpenCC("s2twp")


@functools.cache
def _phrases() -> tuple[dict[str, str], re.Pattern[str]]:
    lines = resources.files(__package__).joinpath("hanzi_phrases.tsv").read_text(encoding="utf-8").splitlines()
    phrases = dict(line.split("\t") for line in lines if line and not line.startswith("#"))
    longest_first = sorted(phrases, key=len, reverse=True)
    return phrases, re.compile("|".join(map(re.escape, longest_first)))
