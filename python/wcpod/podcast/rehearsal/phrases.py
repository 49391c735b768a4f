"""What the stand-in for a model says: `rehearsal/rehearsal.toml` of a show. Words for listeners, and no code.

A sentence is a list of variants; the day decides which one is said. In braces stands a fact of the story, and after a
bar how it is spoken: `{minute|number}`. docs/shows.md lists the ways.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field

from wcpod.exceptions import ModelNotConfigured
from wcpod.podcast.show import Han, Show, Table, Text, read_table

FOLDER = "rehearsal"
_FILE = "rehearsal.toml"
_OUTLINE = Path("guest_code") / "outline.py"


class Sentence(Table):
    """One sentence, or one for each entry of a list fact, said when all of `when` hold and none of `unless`."""

    any: list[Han] = Field(min_length=1)
    each: str | None = None
    when: list[Text] = Field(default_factory=list)
    unless: list[Text] = Field(default_factory=list)


class Story(Table):
    """How a kind of story is told, and how many of it an episode has."""

    kind: Text
    take: int = Field(default=1, ge=1)
    say: list[Sentence] = Field(min_length=1)


class Phrases(Table):
    """The whole file."""

    links: Text
    labels: list[Text] = Field(min_length=1)
    lists: dict[str, list[Text]] = Field(default_factory=dict)
    words: dict[str, list[Han]] = Field(default_factory=dict)
    opening: list[Sentence] = Field(min_length=1)
    stories: list[Story] = Field(min_length=1)
    background: list[Sentence] = Field(default_factory=list)
    closing: list[Sentence] = Field(min_length=1)


def phrases_of(show: Show) -> Phrases:
    """The phrases of a show.

    Raises:
        ShowError: if they are malformed.
        ModelNotConfigured: if the show cannot be rehearsed: it has no phrases or no sample pages.
    """
    file = show.folder / FOLDER / _FILE
    if not file.is_file() or show.sample_pages is None:
        missing = file if not file.is_file() else show.folder / FOLDER / "pages" / "index.jsonl"
        raise ModelNotConfigured(
            f"the show {show.name} cannot be rehearsed: {missing} is missing; "
            "add it (docs/shows.md), or choose another --model"
        )
    return read_table(file, Phrases)


def outline_code(show: Show) -> str:
    """What ContentAgent's stand-in runs on each story in the sandbox, if the show says so."""
    file = show.folder / FOLDER / _OUTLINE
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def inputs_of(show: Show) -> dict[str, Any]:
    """What the composing code needs of the show, as plain values."""
    names = {spelling: name.simplified for name in show.names for spelling in name.pages}
    return {"names": names, "title": show.title.simplified, "zone": show.clock.listeners}
