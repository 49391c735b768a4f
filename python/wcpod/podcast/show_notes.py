"""Show notes of an episode, in Markdown: what it is, and its sources with titles and links."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from wcpod.podcast.scripts import Scripts
from wcpod.podcast.sources import Source, sources_of

# What can begin markup inside a line; a backslash makes it literal (CommonMark 2.4).
_PUNCTUATION = re.compile(r"([\\`*_\[\]<>&#|~!])")
_UNSAFE_IN_A_LINK = {ord(character): f"%{ord(character):02X}" for character in "<>\\ "}


def show_notes(scripts: Scripts, episode: Mapping[str, Any]) -> str:
    """The notes. Titles come from web pages, so nothing in them is markup."""
    lines = [f"# {title_of(episode)}", ""]
    if "note" in episode:
        lines += [f"> {_literal(episode['note'])}", ""]
    lines += [_literal(summary_of(scripts)), "", f"约{round(episode['script']['estimated_minutes'])}分钟。", ""]
    lines += ["## 资料来源", ""]
    lines += [_item(source) for source in sources_of(episode)] or ["没有。"]
    return "\n".join(lines) + "\n"


def title_of(episode: Mapping[str, Any]) -> str:
    """The title of an episode."""
    return f"{episode['show']['title']['simplified']} {episode['day']}"


def summary_of(scripts: Scripts) -> str:
    """The first paragraph after the greeting that says something: the longest of the first four."""
    paragraphs = [paragraph for paragraph in scripts.simplified.split("\n") if paragraph.strip()]
    return max(paragraphs[:4], key=len)


def _item(source: Source) -> str:
    return f"- [{_literal(source.title)}](<{source.url.translate(_UNSAFE_IN_A_LINK)}>)"


def _literal(text: str) -> str:
    return _PUNCTUATION.sub(r"\\\1", text)
