"""Simplified to traditional characters as a listener in Taiwan expects them.

The text is first cut into words, by frequency, so that no phrase begins or ends inside a word (`segments`). Then each
word is converted: by the words of the show, by `words.tsv`, by a rule where the words beside it decide (`rules`), else
by OpenCC (`s2twp`: Taiwan's characters and words).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from wcpod.podcast.hanzi.conversion import Conversion
from wcpod.podcast.hanzi.han import han_characters, han_count

__all__ = ["han_characters", "han_count", "to_traditional"]


def to_traditional(text: str, words: Mapping[str, str] | None = None) -> str:
    """`text` in traditional characters with Taiwan's vocabulary. Anything but Han text stays as it is.

    `words` are those of a topic, simplified to traditional: names and terms that Taiwan says otherwise. Where they
    stand as whole words they win over everything else.
    """
    return _conversion(tuple(sorted((words or {}).items()))).convert(text)


@functools.lru_cache(maxsize=8)
def _conversion(words: tuple[tuple[str, str], ...]) -> Conversion:
    return Conversion(dict(words))
