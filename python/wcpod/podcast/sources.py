"""The pages that an episode rests on, out of its record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from wcpod.control_characters import neutralise


@dataclass(frozen=True, slots=True)
class Source:
    """A page that was read: its title in one line, and its https address."""

    title: str
    url: str


def sources_of(episode: Mapping[str, Any]) -> list[Source]:
    """Each page once, in the order in which they were first read."""
    found: dict[str, Source] = {}
    for fetch in episode["fetches"]:
        url = fetch["final_url"]
        if fetch["status"] == "ok" and url and urlsplit(url).scheme == "https":
            title = " ".join(neutralise(fetch["title"] or "").split()) or url
            found.setdefault(url, Source(title, url))
    return list(found.values())
