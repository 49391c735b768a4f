"""What the stand-in for a model knows beside the conversation: the show that it rehearses."""

from __future__ import annotations

from dataclasses import dataclass

from wcpod.podcast.rehearsal.phrases import Phrases, outline_code, phrases_of
from wcpod.podcast.show import Show


@dataclass(frozen=True, slots=True)
class Part:
    """The show, what is said in it, and the code that works out more of a story's facts."""

    show: Show
    phrases: Phrases
    outline_code: str

    @classmethod
    def of(cls, show: Show) -> Part:
        """The part for a show.

        Raises:
            ShowError, ModelNotConfigured: as `phrases_of`.
        """
        return cls(show, phrases_of(show), outline_code(show))
