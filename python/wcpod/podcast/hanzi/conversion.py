"""Conversion of a text, word by word."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from importlib import resources

from opencc import OpenCC

from wcpod.podcast.hanzi.han import HAN
from wcpod.podcast.hanzi.opencc_phrases import opencc_phrases
from wcpod.podcast.hanzi.rules import by_rule, in_a_name, is_trophy
from wcpod.podcast.hanzi.segments import Segmenter, Word

_RUNS = re.compile(r"(?:[^\W_]|[·・‧-])+|(?:(?![·・‧-])[\W_])+")


class Conversion:
    """From simplified to Taiwan's traditional characters, with the words of a topic."""

    def __init__(self, words: Mapping[str, str]) -> None:
        self._words = {**_general_words(), **words}
        self._phrases = opencc_phrases()
        self._segmenter = Segmenter([self._words, self._phrases], self._words)

    def convert(self, text: str) -> str:
        """`text` in traditional characters."""
        runs = _RUNS.findall(text)
        return "".join(self._run(run, before) for before, run in zip(("", *runs), runs, strict=False))

    def _run(self, run: str, before: str) -> str:
        """A run of letters, or of what stands between. The segmenter knows no traditional words: OpenCC cuts those."""
        if not HAN.search(run):
            return run
        if any(map(_is_traditional, run)):
            return opencc_convert(run)
        words = [Word(before, "x"), *self._segmenter.words(run)]
        return "".join(self._word(words, index) for index in range(1, len(words)))

    def _word(self, words: list[Word], index: int) -> str:
        text = words[index].text
        if (own := self._words.get(text)) is not None:
            return own
        if (ruled := by_rule(words, index)) is not None:
            return ruled
        if is_trophy(words[index]):
            return opencc_convert(text[:-1]) + "盃"
        converted = opencc_convert(text)
        return converted if text in self._phrases else in_a_name(words, index, converted)


@functools.lru_cache(maxsize=16384)
def _is_traditional(character: str) -> bool:
    simplified: str = _engine("t2s").convert(character)
    return simplified != character


@functools.lru_cache(maxsize=16384)
def opencc_convert(text: str) -> str:
    """What OpenCC makes of `text` alone."""
    converted: str = _engine("s2twp").convert(text)
    return converted


@functools.cache
def _engine(config: str) -> OpenCC:
    return OpenCC(config)


@functools.cache
def _general_words() -> dict[str, str]:
    lines = resources.files(__package__).joinpath("words.tsv").read_text(encoding="utf-8").splitlines()
    return dict(line.split("\t") for line in lines if line and not line.startswith("#"))
