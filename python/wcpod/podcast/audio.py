"""The plug-in point for audio. wcpod ships no voice; a package can, with an entry point of the group `wcpod.audio`.

    [project.entry-points."wcpod.audio"]
    myvoice = "my_package:narrate"

`narrate(script: str) -> Audio` gets the simplified script. `wcpod run --audio myvoice` calls it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Protocol

from wcpod.exceptions import PipelineError

GROUP = "wcpod.audio"


class AudioNotInstalled(PipelineError):
    """There is no audio plug-in of that name."""


@dataclass(frozen=True, slots=True)
class Audio:
    """A recording: its bytes, the ending of its file name ("mp3"), and its media type ("audio/mpeg")."""

    data: bytes
    ending: str
    media_type: str

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z0-9]{1,8}", self.ending):
            raise ValueError(f"Audio.ending must be letters and digits such as 'mp3', not {self.ending!r}")


class Narrator(Protocol):
    """What a plug-in provides."""

    def __call__(self, script: str) -> Audio:
        """Read the script aloud."""
        ...


def load_narrator(name: str) -> Narrator:
    """The plug-in of that name.

    Raises:
        AudioNotInstalled: if no installed package has it, or it cannot be loaded.
    """
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name not in found:
        installed = ", ".join(sorted(found)) or "none"
        raise AudioNotInstalled(f"there is no audio plug-in {name!r}; installed: {installed}")
    try:
        narrator: Narrator = found[name].load()
    except Exception as error:  # whatever the module of a plug-in raises
        reason = f"{type(error).__name__}: {error}"
        raise AudioNotInstalled(f"the audio plug-in {name!r} cannot be loaded: {reason}") from error
    return narrator
