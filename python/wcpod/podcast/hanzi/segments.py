"""Words: where each begins and ends, and of what kind it is. A frequency-based segmenter (jieba-rs) cuts the text.

Two things come on top. A long word that is in no table is cut again into the words that it is made of, since no phrase
may begin inside one of them. And words side by side become one where together they are a word of a table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

import rjieba

_FREQUENCY = 300
"""Of a word that is added to the segmenter's dictionary: that of an ordinary name, too low to cut a common word."""
_LONG = 4
_WHOLE = ("nr", "ns", "nz", "m")
"""Names and numbers are not cut again."""
_JOINED = "x"


@dataclass(frozen=True)
class Word:
    """A word, and its kind in jieba's letters: `nr` a person, `ns` a place, `nz` another name, `v` a verb..."""

    text: str
    kind: str


class Segmenter:
    """Cuts text into words. Words of `tables` are kept whole; those `added` are new to its dictionary."""

    def __init__(self, tables: list[Collection[str]], added: Iterable[str]) -> None:
        self._tables, self._longest = tables, max((len(word) for table in tables for word in table), default=0)
        self._jieba = rjieba.Jieba()
        for word in added:
            if len(word) > 1 and not self._jieba.has_word(word):
                self._jieba.add_word(word, _FREQUENCY, "nz")

    def words(self, text: str) -> list[Word]:
        """The words of `text`, in order and without a gap."""
        cut = [Word(part, kind) for part, kind in self._jieba.tag(text, False)]
        return [part for word in self._joined(cut) for part in self._joined(list(self._parts(word)))]

    def _known(self, text: str) -> bool:
        return any(text in table for table in self._tables)

    def _parts(self, word: Word) -> Iterator[Word]:
        """A word, or the shorter words that a long one is made of."""
        if len(word.text) < _LONG or self._known(word.text) or word.kind.startswith(_WHOLE):
            yield word
            return
        position = 0
        for start, end in self._inner(word.text):
            if start < position:
                continue
            if start > position:
                yield Word(word.text[position:start], word.kind)
            yield Word(word.text[start:end], word.kind)
            position = end
        if position < len(word.text):
            yield Word(word.text[position:], word.kind)

    def _inner(self, text: str) -> list[tuple[int, int]]:
        """Where words stand inside a word: the first first, and of those the longest."""
        tokens = self._jieba.tokenize(text, "search", False)
        return sorted(
            ((start, end) for part, start, end in tokens if part != text), key=lambda span: (span[0], -span[1])
        )

    def _joined(self, words: list[Word]) -> Iterator[Word]:
        index = 0
        while index < len(words):
            end = self._end(words, index)
            text = "".join(word.text for word in words[index:end])
            yield words[index] if end == index + 1 else Word(text, _JOINED)
            index = end

    def _end(self, words: list[Word], index: int) -> int:
        """Where the longest known word that begins at `index` ends."""
        text, longest = "", index + 1
        for end, word in enumerate(words[index:], index + 1):
            text += word.text
            if len(text) > self._longest:
                break
            if self._known(text):
                longest = end
        return longest
