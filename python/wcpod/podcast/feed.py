"""The podcast's RSS 2.0 feed: one item for an episode, or a channel over all days of a folder.

With the tags of Apple (`itunes:`) and Podcasting 2.0 (`podcast:`), for the address under which the files are published.
It says nothing that is not in the files of the days, so the same days make the same feed.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import format_datetime
from typing import Any
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree
from zoneinfo import ZoneInfo

from wcpod.control_characters import neutralise
from wcpod.exceptions import PipelineError
from wcpod.podcast.audio import Audio
from wcpod.podcast.day_folder import DayFolder
from wcpod.podcast.scripts import Scripts
from wcpod.podcast.show_notes import channel_facts, summary_of, title_of
from wcpod.podcast.sources import sources_of

FEED_FILE = "feed.xml"
_ATOM = "http://www.w3.org/2005/Atom"
_ITUNES = "http://www.itunes.com/dtds/podcast-1.0.dtd"
_PODCAST = "https://podcastindex.org/namespace/1.0"
_FEEDS = uuid.UUID("ead4c236-bf58-58c6-a2c6-a6b28d128cb6")
"""The name space of `podcast:guid`, from its specification."""
_TRANSCRIPTS = (("simple.zh.txt", "zh-CN"), ("tranditional.zh.txt", "zh-TW"))

for _prefix, _namespace in (("atom", _ATOM), ("itunes", _ITUNES), ("podcast", _PODCAST)):
    ElementTree.register_namespace(_prefix, _namespace)


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


@dataclass(frozen=True, slots=True)
class Recording:
    """A file of sound beside the scripts: ending of its name, media type, size in bytes."""

    ending: str
    media_type: str
    size: int


@dataclass(frozen=True, slots=True)
class FeedItem:
    """An episode as the feed needs it."""

    folder: DayFolder
    episode: Mapping[str, Any]
    scripts: Scripts
    recording: Recording | None = None


def feed_of(
    scripts: Scripts, episode: Mapping[str, Any], folder: DayFolder, *, base: str, audio: Audio | None = None
) -> bytes:
    """A feed with the one item of an episode.

    Args:
        base: Address of the folder that holds the days, from `base_address`.
        audio: The recording, for the enclosure.
    """
    recording = None if audio is None else Recording(audio.ending, audio.media_type, len(audio.data))
    item = FeedItem(folder, episode, scripts, recording)
    return channel_of([item], base=base, place=f"{folder.stamp}/{folder.stamp}.rss.xml")


def channel_of(
    items: Sequence[FeedItem],
    *,
    base: str,
    place: str = FEED_FILE,
    cover: str | None = None,
    built: dt.datetime | None = None,
) -> bytes:
    """A feed with these items, the newest day first. The newest episode says what the show is called.

    Args:
        base: Address of the folder that holds the days, from `base_address`.
        place: The feed's own name under `base`.
        cover: Name of the picture under `base`.
        built: When the newest of the episodes was written; by default its day.
    """
    items = sorted(items, key=lambda item: item.folder.day, reverse=True)
    about = channel_facts(items[0].episode)
    rss = ElementTree.Element("rss", version="2.0")
    channel = ElementTree.SubElement(rss, "channel")
    title = about["title"]
    _add(channel, "title", title)
    _add(channel, "link", base)
    _add(channel, "description", about["about"])
    _add(channel, "language", "zh-cn")
    _add(channel, "lastBuildDate", _date(built or _midnight(items[0])))
    _add(channel, "generator", "wcpod")
    address = base + quote(place)
    _add(channel, f"{{{_ATOM}}}link", "").attrib.update(rel="self", type="application/rss+xml", href=address)
    _add(channel, f"{{{_PODCAST}}}guid", str(uuid.uuid5(_FEEDS, address.partition("://")[2])))
    _add(channel, f"{{{_PODCAST}}}locked", "no")
    _add(channel, f"{{{_ITUNES}}}author", title)
    _add(channel, f"{{{_ITUNES}}}type", "episodic")
    _add(channel, f"{{{_ITUNES}}}explicit", "false")
    category = _add(channel, f"{{{_ITUNES}}}category", "")
    category.set("text", "News")
    _add(category, f"{{{_ITUNES}}}category", "").set("text", "Daily News")
    if cover is not None:
        _add_cover(channel, title, base, cover)
    for item in items:
        _add_item(channel, item, base)
    ElementTree.indent(rss)
    feed: bytes = ElementTree.tostring(rss, encoding="utf-8", xml_declaration=True)
    return feed + b"\n"


def _add_cover(channel: ElementTree.Element, title: str, base: str, cover: str) -> None:
    image = ElementTree.SubElement(channel, "image")
    _add(image, "url", base + quote(cover))
    _add(image, "title", title)
    _add(image, "link", base)
    _add(channel, f"{{{_ITUNES}}}image", "").set("href", base + quote(cover))


def _add_item(channel: ElementTree.Element, item: FeedItem, base: str) -> None:
    folder, episode = item.folder, item.episode
    element = ElementTree.SubElement(channel, "item")
    _add(element, "title", title_of(episode))
    _add(element, "link", _address(base, folder, "notes.md"))
    _add(element, "guid", f"wcpod:{channel_facts(episode)['name']}:{episode['day']}").set("isPermaLink", "false")
    _add(element, "pubDate", _date(_midnight(item)))
    _add(element, "description", _description(item))
    seconds = round(episode["script"]["estimated_minutes"] * 60)
    _add(element, f"{{{_ITUNES}}}duration", str(seconds))
    _add(element, f"{{{_ITUNES}}}explicit", "false")
    _add(element, f"{{{_ITUNES}}}episodeType", "full")
    for ending, language in _TRANSCRIPTS:
        _add(element, f"{{{_PODCAST}}}transcript", "").attrib.update(
            url=_address(base, folder, ending), type="text/plain", language=language
        )
    if (recording := item.recording) is not None:
        ElementTree.SubElement(
            element,
            "enclosure",
            url=_address(base, folder, recording.ending),
            length=str(recording.size),
            type=recording.media_type,
        )


def _midnight(item: FeedItem) -> dt.datetime:
    """When the day of an episode begins where its listeners are."""
    return dt.datetime.combine(item.folder.day, dt.time(), ZoneInfo(channel_facts(item.episode)["zone"]))


def _date(moment: dt.datetime) -> str:
    return format_datetime(moment)


def _description(item: FeedItem) -> str:
    episode = item.episode
    lines = [episode["note"]] if "note" in episode else []
    lines += [summary_of(item.scripts), *(f"{source.title} {source.url}" for source in sources_of(episode))]
    return "\n".join(lines)


def _address(base: str, folder: DayFolder, ending: str) -> str:
    return f"{base}{folder.stamp}/{quote(f'{folder.stamp}.{ending}')}"


def _add(parent: ElementTree.Element, tag: str, text: str) -> ElementTree.Element:
    element = ElementTree.SubElement(parent, tag)
    element.text = neutralise(text) or None  # XML has no control characters, not even escaped
    return element
