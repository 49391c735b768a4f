"""What an episode has beside its scripts: notes and segments always; feed and audio when they are asked for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wcpod.exceptions import PipelineError
from wcpod.podcast.all_days import write_feed
from wcpod.podcast.audio import Audio, Narrator
from wcpod.podcast.day_folder import DayFolder
from wcpod.podcast.feed import feed_of
from wcpod.podcast.scripts import Scripts
from wcpod.podcast.segments import segments_file
from wcpod.podcast.show_notes import show_notes


@dataclass(frozen=True, slots=True)
class Products:
    """The products to make.

    Attributes:
        base: Address under which the folder of the days is published (`feed.base_address`); makes a feed item, and
            the feed over all days.
        narrator: Reads the script aloud; makes an audio file.
    """

    base: str | None = None
    narrator: Narrator | None = None

    def of(
        self, scripts: Scripts, episode: Mapping[str, Any], folder: DayFolder, *, names: Collection[str] = ()
    ) -> dict[str, bytes]:
        """The files: ending of the name → content.

        Args:
            names: Names of people, teams and places, simplified: they get their pinyin in the segments.

        Raises:
            PipelineError: if the audio plug-in fails.
        """
        files = {
            "notes.md": show_notes(scripts, episode).encode(),
            "segments.json": segments_file(scripts, episode, names),
        }
        audio = self._audio(scripts)
        if audio is not None:
            files[audio.ending] = audio.data
        if self.base is not None:
            files["rss.xml"] = feed_of(scripts, episode, folder, base=self.base, audio=audio)
        return files

    def publish(self, folder: DayFolder, *, cover: Path) -> None:
        """What spans the days, after the episode of one is saved: the feed over all of them.

        Args:
            cover: The show's picture, if there is one. A picture that lies beside the days already stays.

        Raises:
            PipelineError: if it cannot be written; the episode is saved.
        """
        if self.base is not None:
            try:
                write_feed(folder.out, self.base, cover=cover)
            except PipelineError as error:
                raise PipelineError(f"the episode is saved, but not the feed: {error}") from error

    def _audio(self, scripts: Scripts) -> Audio | None:
        if self.narrator is None:
            return None
        try:
            audio = self.narrator(scripts.simplified)
        except Exception as error:  # whatever a plug-in of someone else raises
            raise PipelineError(f"the audio plug-in failed: {type(error).__name__}: {error}") from error
        if not isinstance(audio, Audio):
            raise PipelineError(f"the audio plug-in returned {type(audio).__name__}, not wcpod.podcast.audio.Audio")
        return audio


NOTES_ONLY = Products()
