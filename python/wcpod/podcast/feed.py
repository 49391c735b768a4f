"""An RSS 2.0 feed with the one item of an episode, for the address under which its files are published."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from email.utils import format_datetime
from typing import Any
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree

from wcpod.control_characters import neutralise
from wcpod.exceptions import PipelineError
from wcpod.podcast.audio import Audio
from wcpod.podcast.day_folder import DayFolder
from wcpod.podcast.scripts import Scripts
from wcpod.podcast.show_notes import summary_of, title_of
from wcpod.podcast.sources import sources_of


class BaseAddressError(PipelineError):
    """The base address is no http or https address of a folder."""


def base_address(text: str) -> str:
    """`text` with exactly one final slash.

    Raises:
        BaseAddressError: if it is no absolute http or https address, or carries a query or a fragment.
    """
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
        raise BaseAddressError(f"the base address must be like https://example.org/podcast, not {text!r}")
    return text.rstrip("/") + "/"


def feed_of(
    scripts: Scripts, episode: Mapping[str, Any], folder: DayFolder, *, base: str, audio: Audio | None = None
) -> bytes:
    """The feed. It depends on the episode alone, not on when it is made: the item is dated by its day.

    Args:
        base: Address of the folder that holds the days, from `base_address`.
        audio: The recording, for the enclosure.
    """
    rss = ElementTree.Element("rss", version="2.0")
    channel = ElementTree.SubElement(rss, "channel")
    _add(channel, "title", episode["show"]["title"]["simplified"])
    _add(channel, "link", base)
    _add(channel, "description", episode["show"]["about"]["simplified"])
    _add(channel, "language", "zh-cn")
    item = ElementTree.SubElement(channel, "item")
    _add(item, "title", title_of(episode))
    _add(item, "link", _address(base, folder, "notes.md"))
    _add(item, "guid", f"wcpod:{episode['day']}").set("isPermaLink", "false")
    midnight = dt.datetime.combine(folder.day, dt.time(), dt.timezone.utc)
    _add(item, "pubDate", format_datetime(midnight, usegmt=True))
    _add(item, "description", _description(scripts, episode))
    if audio is not None:
        ElementTree.SubElement(
            item,
            "enclosure",
            url=_address(base, folder, audio.ending),
            length=str(len(audio.data)),
            type=audio.media_type,
        )
    ElementTree.indent(rss)
    feed: bytes = ElementTree.tostring(rss, encoding="utf-8", xml_declaration=True)
    return feed + b"\n"


def _description(scripts: Scripts, episode: Mapping[str, Any]) -> str:
    lines = [episode["note"]] if "note" in episode else []
    lines += [summary_of(scripts), *(f"{source.title} {source.url}" for source in sources_of(episode))]
    return "\n".join(lines)


def _address(base: str, folder: DayFolder, ending: str) -> str:
    return f"{base}{folder.stamp}/{quote(f'{folder.stamp}.{ending}')}"


def _add(parent: ElementTree.Element, tag: str, text: str) -> ElementTree.Element:
    element = ElementTree.SubElement(parent, tag)
    element.text = neutralise(text)  # XML has no control characters, not even escaped
    return element
