"""The folder of one day's episode: `<out>/<YYMMDD>/`, its files, and the lock of the run that writes them.

260615/260615.simple.zh.txt
260615/260615.tranditional.zh.txt   (spelled so: the name is a contract)
260615/260615.notes.md              (show notes; more products as they are asked for)
260615/episode.json                 (written last: a day with it is complete)
"""

from __future__ import annotations

import contextlib
import datetime as dt
import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from wcpod.exceptions import PipelineError
from wcpod.podcast.file_exchange import clear_dead_exchanges, exchange_files, write_file

Existing = Literal["nothing", "rehearsal", "episode"]


class DayExists(PipelineError):
    """The day is already written, and this run may not replace it."""


class DayInUse(PipelineError):
    """Another run holds the day."""


@dataclass(frozen=True, slots=True)
class DayFolder:
    """Where the files of `day` are under `out`."""

    out: Path
    day: dt.date

    @property
    def stamp(self) -> str:
        """The day as YYMMDD."""
        return self.day.strftime("%y%m%d")

    @property
    def path(self) -> Path:
        """The folder itself."""
        return self.out / self.stamp

    @property
    def simplified(self) -> Path:
        """The script in simplified characters."""
        return self.path / f"{self.stamp}.simple.zh.txt"

    @property
    def traditional(self) -> Path:
        """The script in traditional characters."""
        return self.path / f"{self.stamp}.tranditional.zh.txt"

    @property
    def episode(self) -> Path:
        """The record of how the scripts were made."""
        return self.path / "episode.json"

    @property
    def drafts(self) -> Path:
        """Where the drafts of a run that failed are kept, beside the folder of the day and never in it."""
        return self.out / f"{self.stamp}.drafts"

    @property
    def audit(self) -> Path:
        """Where each fetch of the day's runs is noted, one JSON line each; never emptied."""
        return self.out / f"{self.stamp}.audit.jsonl"

    @property
    def checkpoints(self) -> Path:
        """Where a run keeps its checkpoints until its episode is saved."""
        return self.out / f"{self.stamp}.checkpoints"

    def existing(self) -> Existing:
        """What the day holds. Files without a readable record count as an episode: they are not ours to lose."""
        if not any(path.exists() for path in (self.simplified, self.traditional, self.episode)):
            return "nothing"
        try:
            record = json.loads(self.episode.read_text(encoding="utf-8"))
            return "rehearsal" if record["model"]["rehearsal"] is True else "episode"
        except (OSError, ValueError, KeyError, TypeError):
            return "episode"

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the day for one run. The lock is the kernel's (flock on the folder), so a dead process holds none.

        Raises:
            DayInUse: if another run holds it.
            PipelineError: if the folder cannot be made.
        """
        try:
            handle = self._open_locked()
        except BlockingIOError:
            raise DayInUse(f"another run is writing {self.path}; wait for it to end") from None
        except OSError as error:
            raise PipelineError(f"cannot use the folder {self.path}: {error.strerror}") from error
        try:
            clear_dead_exchanges(self.path)
            yield
        finally:
            with contextlib.suppress(OSError):
                self.path.rmdir()  # only succeeds when the run left nothing in it
            os.close(handle)

    def publish(
        self,
        simplified: str,
        traditional: str,
        episode: Mapping[str, Any],
        products: Mapping[str, bytes] | None = None,
    ) -> tuple[Path, ...]:
        """Replace the day's files by these, whole: each is complete on disk before the first takes its place.

        Args:
            products: Further files of the episode: ending of the name, such as "notes.md", and content. A product of
                an earlier episode that this one does not have is removed.

        Raises:
            PipelineError: if that fails; then the files that the day had are as they were.
        """
        files = {
            self.simplified.name: simplified.encode(),
            self.traditional.name: traditional.encode(),
            **{f"{self.stamp}.{ending}": content for ending, content in (products or {}).items()},
            self.episode.name: (json.dumps(episode, ensure_ascii=False, indent=2) + "\n").encode(),
        }
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            outdated = sorted(path.name for path in self.path.glob(f"{self.stamp}.*") if path.name not in files)
            exchange_files(self.path, files, drop=outdated)
        except OSError as error:
            raise PipelineError(f"cannot write the episode into {self.path}: {error.strerror or error}") from error
        return tuple(self.path / name for name in files)

    def keep_drafts(self, drafts: Sequence[str]) -> None:
        """Write the drafts of a failed run, in place of earlier ones. Best effort: the run has failed anyway."""
        with contextlib.suppress(OSError):
            shutil.rmtree(self.drafts, ignore_errors=True)
            self.drafts.mkdir(parents=True)
            for number, draft in enumerate(drafts, start=1):
                text = draft.rstrip("\n") + "\n"
                write_file(self.drafts / f"draft-{number}.md", text.encode("utf-8", "backslashreplace"))

    def _open_locked(self) -> int:
        while True:
            self.path.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Another run may have removed the empty folder between open and flock.
                if os.fstat(handle).st_nlink > 0:
                    return handle
            except OSError:
                os.close(handle)
                raise
            os.close(handle)
