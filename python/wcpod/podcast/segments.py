"""`segments.json`: the script cut for a voice. Sentences, pauses, and names with their pinyin.

For whoever adds speech: each sentence is one request, a pause follows it, and a name is said as its pinyin shows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from pypinyin import Style, lazy_pinyin

from wcpod.podcast.hanzi import han_count
from wcpod.podcast.scripts import Scripts

SCHEMA_VERSION = 1
HAN_PER_SECOND = 260 / 60
_SENTENCE = re.compile(r"[^。！？…!?]*[。！？…!?]+[”’」』》）)]*|[^。！？…!?]+$")
_AFTER_SENTENCE, _AFTER_PARAGRAPH = 0.5, 1.0
_INSIDE = {"、": 0.15, "，": 0.25, "；": 0.4, "：": 0.3, "—": 0.3}


def segments_file(scripts: Scripts, episode: Mapping[str, Any], names: Collection[str] = ()) -> bytes:
    """The content of the file.

    Args:
        names: Names of people, teams and places as the simplified script writes them.
    """
    content = {
        "schema_version": SCHEMA_VERSION,
        "day": episode["day"],
        "language": "zh-CN",
        "segments": segments_of(scripts.simplified, names),
    }
    return (json.dumps(content, ensure_ascii=False, indent=2) + "\n").encode()


def segments_of(script: str, names: Collection[str] = ()) -> list[dict[str, Any]]:
    """Each sentence: paragraph (from 1), text, estimated seconds, pause after it, pauses inside it, names.

    Pauses are in seconds. `at` counts characters of the text from 0: a pause comes after that character, a name begins
    with it. The pinyin of a name is one syllable for each character, with the tone as a number (5 for none).
    """
    segments: list[dict[str, Any]] = []
    paragraphs = [line.strip() for line in script.split("\n") if line.strip()]
    for number, paragraph in enumerate(paragraphs, start=1):
        segments += [_segment(number, text, names) for text in sentences_of(paragraph)]
        segments[-1]["pause"] = _AFTER_PARAGRAPH
    if segments:
        segments[-1]["pause"] = 0.0
    return segments


def sentences_of(paragraph: str) -> list[str]:
    """The sentences of a paragraph, each with the marks that end it."""
    return [text for text in map(str.strip, _SENTENCE.findall(paragraph)) if text]


def _segment(paragraph: int, text: str, names: Collection[str]) -> dict[str, Any]:
    return {
        "paragraph": paragraph,
        "text": text,
        "seconds": round(han_count(text) / HAN_PER_SECOND, 2),
        "pause": _AFTER_SENTENCE,
        "pauses": [
            {"at": at, "seconds": _INSIDE[character]}
            for at, character in enumerate(text[:-1])
            if character in _INSIDE and text[at + 1] != character
        ],
        "names": _names(text, names),
    }


def _names(text: str, names: Collection[str]) -> list[dict[str, Any]]:
    """The names in a sentence; where one is part of another, the longer."""
    if not names:
        return []
    longest_first = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return [
        {"at": found.start(), "text": found[0], "pinyin": pinyin_of(found[0])}
        for found in re.finditer(longest_first, text)
    ]


def pinyin_of(name: str) -> list[str]:
    """A syllable for each Han character, as in `bu4 lei2`; what is no Han character stays as it is."""
    # `errors` may give a part for each character, which its type does not say.
    return lazy_pinyin(name, style=Style.TONE3, neutral_tone_with_five=True, errors=list)  # type: ignore[arg-type]
