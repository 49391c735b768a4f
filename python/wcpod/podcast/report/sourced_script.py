"""The script with a way from each sentence to what it rests on: the page or the fact that the editor found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wcpod.podcast.claims import sentences_of
from wcpod.podcast.sources import Source


@dataclass(frozen=True, slots=True)
class Mark:
    """A link behind a sentence: the anchor that it leads to, and the sign that is shown."""

    anchor: str
    sign: str


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence and its marks; `anchor` is where a source leads back to."""

    text: str
    anchor: str
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class SourcedScript:
    """The paragraphs of a script, and the facts of the show that its marks speak of."""

    paragraphs: tuple[tuple[Sentence, ...], ...]
    facts: tuple[str, ...]

    @classmethod
    def of(cls, script: str, episode: Mapping[str, Any], sources: Sequence[Source]) -> SourcedScript:
        """The script of an episode, with what the editor has noted in its record, if it has."""
        editor = episode.get("editor", {})
        places = {source.url: number for number, source in enumerate(sources, start=1)}
        pages = {page["number"]: places.get(page["url"]) for page in editor.get("pages", [])}
        noted = {(found["paragraph"], found["text"]): found for found in editor.get("sentences", [])}
        facts: list[str] = []
        paragraphs: dict[int, list[Sentence]] = {}
        for number, (paragraph, text) in enumerate(sentences_of(script), start=1):
            found = noted.get((paragraph, text), {"pages": [], "facts": []})
            marks = [
                Mark(f"source-{place}", str(place)) for page in found["pages"] if (place := pages.get(page)) is not None
            ]
            for fact in found["facts"]:
                if fact not in facts:
                    facts.append(fact)
                marks.append(Mark(f"fact-{facts.index(fact) + 1}", f"F{facts.index(fact) + 1}"))
            paragraphs.setdefault(paragraph, []).append(Sentence(text, f"sentence-{number}", tuple(marks)))
        return cls(tuple(tuple(sentences) for sentences in paragraphs.values()), tuple(facts))

    def resting_on(self, anchor: str) -> list[Sentence]:
        """The sentences that lead to a source or a fact."""
        return [
            sentence
            for sentences in self.paragraphs
            for sentence in sentences
            if any(mark.anchor == anchor for mark in sentence.marks)
        ]
