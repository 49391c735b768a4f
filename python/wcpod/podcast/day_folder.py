"""The folder of one day's episode: `<out>/<YYMMDD>/`, its three files, and the lock of the run that writes them.

260615/260615.simple.zh.txt
260615/260615.tranditional.zh.txt   (spelled so: the name is a contract)
260615/episode.json                 (written last: a day with it is complete)
"""

from __future__ import annotations

import contextlib
import datetime as dt
import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from wcpod.exceptions import PipelineError

_SCRATCH = ".writing-"

Existing = Literal["nothing", "rehearsal", "episode"]


class DayExists(PipelineError):
    """The day is already written, and this run may not replace it."""


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
            PipelineError: if another run holds it, or the folder cannot be made.
        """
        try:
            handle = self._open_locked()
        except BlockingIOError:
            raise PipelineError(f"another run is writing {self.path}; wait for it to end") from None
        except OSError as error:
            raise PipelineError(f"cannot use the folder {self.path}: {error.strerror}") from error
        try:
            for left_by_a_dead_run in self.path.glob(f"{_SCRATCH}*"):
                shutil.rmtree(left_by_a_dead_run)
            yield
        finally:
            with contextlib.suppress(OSError):
                self.path.rmdir()  # only succeeds when the run left nothing in it
            os.close(handle)

    def publish(self, simplified: str, traditional: str, episode: Mapping[str, Any]) -> tuple[Path, Path, Path]:
        """Replace the day's files by these, whole: each is complete on disk before the first takes its place.

        Raises:
            PipelineError: if that fails; then the files that the day had are as they were.
        """
        record = json.dumps(episode, ensure_ascii=False, indent=2) + "\n"
        targets = (self.simplified, self.traditional, self.episode)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=self.path) as scratch:
                written = [
                    _write(Path(scratch) / target.name, text)
                    for target, text in zip(targets, (simplified, traditional, record), strict=True)
                ]
                _exchange(written, targets, Path(scratch))
            _sync_folder(self.path)
        except OSError as error:
            raise PipelineError(f"cannot write the episode into {self.path}: {error.strerror or error}") from error
        return targets

    def keep_drafts(self, drafts: Sequence[str]) -> None:
        """Write the drafts of a failed run, in place of earlier ones. Best effort: the run has failed anyway."""
        with contextlib.suppress(OSError):
            shutil.rmtree(self.drafts, ignore_errors=True)
            self.drafts.mkdir(parents=True)
            for number, draft in enumerate(drafts, start=1):
                _write(self.drafts / f"draft-{number}.md", draft.rstrip("\n") + "\n")

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


def _write(path: Path, text: str) -> Path:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    return path


def _exchange(written: list[Path], targets: tuple[Path, ...], scratch: Path) -> None:
    """Move each written file to its target; on an error put back what was there."""
    before: list[tuple[Path, Path | None]] = []
    try:
        for source, target in zip(written, targets, strict=True):
            kept = scratch / f"{target.name}.before"
            if target.exists():
                _keep(target, kept)
            before.append((target, kept if kept.exists() else None))
            source.replace(target)
    except BaseException:
        for target, earlier in reversed(before):
            if earlier is None:
                target.unlink(missing_ok=True)
            else:
                earlier.replace(target)
        raise


def _keep(file: Path, copy: Path) -> None:
    try:
        os.link(file, copy)
    except OSError:  # a file system without hard links
        shutil.copy2(file, copy)


def _sync_folder(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
