"""The shows that come with wcpod: a folder each. What is in one is read by `wcpod.podcast.show`."""

from __future__ import annotations

import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SHOWS = Path(__file__).resolve().parent
DEFAULT_SHOW = "world-cup-2026"
SHOW_FILE = "show.toml"


def shipped_shows() -> dict[str, Path]:
    """Name → folder of each show that comes with wcpod, sorted by name."""
    return {file.parent.name: file.parent for file in sorted(SHOWS.glob(f"*/{SHOW_FILE}"))}


def default_hosts() -> list[str]:
    """The hosts that the default show reads."""
    data = tomllib.loads((SHOWS / DEFAULT_SHOW / SHOW_FILE).read_text(encoding="utf-8"))
    return [str(host) for host in data["pages"]["hosts"]]
