"""The feed over all days of a folder, kept beside them: `<out>/feed.xml`."""

from __future__ import annotations

import contextlib
import datetime as dt
import fcntl
import json
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wcpod.exceptions import PipelineError
from wcpod.podcast.day_folder import DayFolder
from wcpod.podcast.feed import FEED_FILE, FeedItem, Recording, channel_of
from wcpod.podcast.plain_files import read_plain_file
from wcpod.podcast.scripts import Scripts

COVER = "cover.png"
_COVERS = ("cover.jpg", COVER)
_STAMP = re.compile(r"\d{6}")
_SOUND = {
    "mp3": "audio/mpeg",
    "m4a": "audio/mp4",
    "aac": "audio/aac",
    "ogg": "audio/ogg",
    "opus": "audio/ogg",
    "wav": "audio/wav",
    "flac": "audio/flac",
}


class NoEpisodes(PipelineError):
    """The folder holds no episode."""


def write_feed(out: Path, base: str, *, cover: Path | None = None) -> Path:
    """Write the feed of all days in `out`, whole, and return its path.

    What is no day of ours, or cannot be read, is passed over: the folder may hold what others put there.

    Args:
        base: Address under which `out` is published, from `base_address`.
        cover: A picture to put beside the days, `cover.png`, unless `cover.jpg` or `cover.png` lies there already.

    Raises:
        NoEpisodes: if there is none.
        PipelineError: if the feed cannot be written.
    """
    try:
        with _alone(out):
            items = list(_episodes(out))
            if not items:
                raise NoEpisodes(f"{out} holds no episode")
            feed = channel_of(items, base=base, cover=_cover(out, cover), built=_newest(items))
            return _replace(out / FEED_FILE, feed)
    except OSError as error:
        raise PipelineError(f"cannot write {out / FEED_FILE}: {error.strerror or error}") from error


def _episodes(out: Path) -> Iterator[FeedItem]:
    for entry in sorted(out.iterdir()):
        if _STAMP.fullmatch(entry.name) and entry.is_dir() and not entry.is_symlink():
            with contextlib.suppress(OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
                yield _episode(out, entry.name)


def _episode(out: Path, stamp: str) -> FeedItem:
    episode: dict[str, Any] = json.loads(_text(out / stamp / "episode.json"))
    folder = DayFolder(out, dt.date.fromisoformat(episode["day"]))
    if folder.stamp != stamp:
        raise ValueError(stamp)
    scripts = Scripts(_text(folder.simplified), _text(folder.traditional))
    item = FeedItem(folder, episode, scripts, _recording(folder))
    channel_of([item], base="https://example.org/")  # a record with parts missing or of another kind is none
    return item


def _cover(out: Path, offered: Path | None) -> str | None:
    """The name of the picture in `out`, if there is one or one is offered."""
    present = next((name for name in _COVERS if os.path.lexists(out / name)), None)
    if present is None and offered is not None and _is_file(offered):
        _replace(out / COVER, read_plain_file(offered))
        present = COVER
    return present


def _recording(folder: DayFolder) -> Recording | None:
    for ending, media_type in _SOUND.items():
        file = folder.path / f"{folder.stamp}.{ending}"
        if _is_file(file):
            return Recording(ending, media_type, file.stat().st_size)
    return None


def _newest(items: list[FeedItem]) -> dt.datetime:
    """When the newest of the episodes was written."""
    written = max(item.folder.episode.stat().st_mtime for item in items)
    return dt.datetime.fromtimestamp(int(written), dt.timezone.utc)


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _text(path: Path) -> str:
    return read_plain_file(path).decode("utf-8")


@contextlib.contextmanager
def _alone(out: Path) -> Iterator[None]:
    """One at a time: of two runs that end together, the later one must see the day of the other."""
    handle = os.open(out, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _replace(path: Path, content: bytes) -> Path:
    handle, name = tempfile.mkstemp(prefix=".writing-", dir=path.parent)
    scratch = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        scratch.chmod(0o644)  # the web server that publishes the folder is another user
        scratch.replace(path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
    return path
