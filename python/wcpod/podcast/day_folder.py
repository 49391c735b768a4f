"""The folder of one day's episode: `<out>/<YYMMDD>/`, its files, and the lock of the run that writes them.

260615/260615.simple.zh.txt
260615/260615.tranditional.zh.txt   (spelled so: the name is a contract)
260615/260615.notes.md              (show notes; more products as they are asked for)
260615/episode.json                 (written last: a day with it is complete)
"""

from __future__ import annotations

import contextlib
import datetime as dt
import errno
import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from wcpod.exceptions import PipelineError
from wcpod.podcast.file_exchange import clear_dead_exchanges, exchange_files
from wcpod.podcast.plain_files import (
    is_plain_file,
    is_plain_name,
    names_in,
    open_folder,
    read_plain_file,
    write_new_file,
)

_REPORT = b'<meta name="generator" content="wcpod">'
_DRAFT = re.compile(r"draft-\d+\.md", re.ASCII)

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
    def report(self) -> Path:
        """The page that shows how the episode was made."""
        return self.path / f"{self.stamp}.report.html"

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

    @property
    def pages(self) -> Path:
        """Where a run keeps the pages that it read, for the editor, until its episode is saved."""
        return self.out / f"{self.stamp}.pages"

    @property
    def failure(self) -> Path:
        """Why the day's last run failed; gone when one has worked."""
        return self.out / f"{self.stamp}.failed.json"

    def existing(self) -> Existing:
        """What the day holds. Files without a readable record count as an episode: they are not ours to lose."""
        if not any(os.path.lexists(path) for path in (self.simplified, self.traditional, self.episode)):
            return "nothing"
        try:
            record = json.loads(read_plain_file(self.episode))
            return "rehearsal" if record["model"]["rehearsal"] is True else "episode"
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
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
            reason = "it is a link" if self.path.is_symlink() else error.strerror
            raise PipelineError(f"cannot use the folder {self.path}: {reason}") from error
        try:
            clear_dead_exchanges(self.path, self._is_own_name)
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
                an earlier episode that this one does not have is removed, unless it was changed since; other files in
                the folder stay.

        Raises:
            PipelineError: if that fails, or a product has the name of a file that no episode wrote; then the files that
                the day had are as they were.
        """
        files = {
            self.simplified.name: simplified.encode(),
            self.traditional.name: traditional.encode(),
            **{f"{self.stamp}.{ending}": content for ending, content in (products or {}).items()},
        }
        written = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
        record = {**episode, "files": written}
        files[self.episode.name] = (json.dumps(record, ensure_ascii=False, indent=2) + "\n").encode()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            exchange_files(self.path, files, drop=self._outdated(files))
        except OSError as error:
            raise PipelineError(f"cannot write the episode into {self.path}: {error.strerror or error}") from error
        self.keep_drafts(())
        return tuple(self.path / name for name in files)

    def keep_drafts(self, drafts: Sequence[str]) -> None:
        """Write the drafts of a failed run, in place of earlier ones. Best effort: the run has failed anyway."""
        with contextlib.suppress(OSError):
            if drafts:
                self.drafts.mkdir(parents=True, exist_ok=True)
            with open_folder(self.drafts) as folder:
                for name in names_in(folder):
                    if _DRAFT.fullmatch(name) and is_plain_file(name, within=folder):
                        os.unlink(name, dir_fd=folder)
                for number, draft in enumerate(drafts, start=1):
                    text = draft.rstrip("\n") + "\n"
                    write_new_file(f"draft-{number}.md", text.encode("utf-8", "backslashreplace"), within=folder)
            if not drafts:
                self.drafts.rmdir()

    def _outdated(self, files: Mapping[str, bytes]) -> list[str]:
        """The files of the earlier episode that the new one does not have, and that are as it left them.

        Raises:
            OSError: if a product would replace a file that no episode wrote.
        """
        earlier, own = self._written(), {self.simplified.name, self.traditional.name, self.episode.name}
        for name in files.keys() - own - earlier.keys() - {f"{self.stamp}.notes.md"}:
            if os.path.lexists(self.path / name):
                raise OSError(errno.EEXIST, f"{name} is there and not of an episode; move it away")
        drop = [name for name, digest in earlier.items() if name not in files and self._is_still(name, digest)]
        return drop + [self.report.name] * self._is_own_report()

    def _written(self) -> dict[str, str]:
        """The files of the episode that the folder holds, as its record names them: name → SHA-256."""
        try:
            files = json.loads(read_plain_file(self.episode))["files"]
            return {name: str(digest) for name, digest in files.items() if self._is_own_name(name)}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return {}

    def _is_own_report(self) -> bool:
        try:
            return _REPORT in read_plain_file(self.report)[:1024]
        except OSError:
            return False

    def _is_own_name(self, name: str) -> bool:
        return is_plain_name(name) and (name == self.episode.name or name.startswith(f"{self.stamp}."))

    def _is_still(self, name: str, digest: str) -> bool:
        try:
            return hashlib.sha256(read_plain_file(self.path / name, most=1 << 30)).hexdigest() == digest
        except OSError:
            return False

    def _open_locked(self) -> int:
        while True:
            self.path.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Another run may have removed the empty folder between open and flock.
                if os.fstat(handle).st_nlink > 0:
                    return handle
            except OSError:
                os.close(handle)
                raise
            os.close(handle)
