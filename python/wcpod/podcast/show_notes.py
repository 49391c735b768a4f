"""Show notes of an episode, in Markdown: what it is, and its sources with titles and links."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from wcpod.podcast.hanzi import han_count
from wcpod.podcast.scripts import Scripts
from wcpod.podcast.segments import sentences_of
from wcpod.podcast.sources import Source, sources_of

# What can begin markup inside a line; a backslash makes it literal (CommonMark 2.4).
_PUNCTUATION = re.compile(r"([\\`*_\[\]<>&#|~!])")
_SUMMARY_HAN, _SHORTEST_HAN = 120, 12
_GREETING = re.compile(
    "^（|今天是|现在是|听众|大家好|早上好|晚上好|早安|您好|你好|欢迎|再见|明天见|下期|下次见|感谢|谢谢|我是|这里是"
)
_LEAD_IN = re.compile(
    "^(?:首先|先看|先来|先说|再看|再来|再说|接着|接下来|最后|下面|另外|此外|然后|那么|来看|我们先|我们再|我们来|看完|说完)"
    "[^，。！？]{0,10}，(?=.{8})"
)
_LEANING = re.compile(
    "[他她它其]|这|那|但|不过|而|所以|因此|于是|随后|随即|同时|双方|两队|两支|也|还|又|却|再|之后|后来|此前|此后|其中|"
    "结果|可是|然而|原因|对此|另一|除此|值得|换句话|也就是|更|并|之所以|接下来|看完|说完|至于"
)
_TELLING = re.compile(
    "[零一二两三四五六七八九十百千万]+(?:比[零一二两三四五六七八九十]|分(?!钟)|[年月日岁米万亿名位次球座届支场])"
)
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
    rehearsed = "（彩排）" if episode.get("model", {}).get("rehearsal") else ""
    return f"{channel_facts(episode)['title']} {episode['day']}{rehearsed}"


def channel_facts(episode: Mapping[str, Any]) -> dict[str, str]:
    """Of its show: `name`, `title` and `about` in simplified characters, and the time `zone` of its listeners."""
    show = episode.get("show")
    if show is None:  # of a version before there were shows
        return {"name": "podcast", "title": "每日播客", "about": "每日播客", "zone": "UTC"}
    title, about = show["title"]["simplified"], show["about"]["simplified"]
    return {"name": show["name"], "title": title, "about": about, "zone": show.get("listeners", "UTC")}


def summary_of(scripts: Scripts) -> str:
    """What it is about: of each story the first sentence that tells something, as far as they are short together.

    A greeting, a lead-in, or a sentence that leans on the one before it tells nothing where it stands first. One with
    a figure does. If there is none, it is the longest paragraph.
    """
    paragraphs = [line for line in scripts.simplified.split("\n") if line.strip()]
    telling = [filter(None, (_standing_alone(sentence) for sentence in sentences_of(text))) for text in paragraphs]
    chosen: list[str] = []
    for sentence in filter(None, (next(sentences, None) for sentences in telling)):
        if chosen and han_count("".join((*chosen, sentence))) > _SUMMARY_HAN:
            break
        chosen.append(sentence)
    return "".join(chosen) or max(paragraphs, key=len, default="")


def _standing_alone(sentence: str) -> str | None:
    """The sentence without its lead-in, if it can be understood where nothing stands before it."""
    told = _LEAD_IN.sub("", sentence)
    if _GREETING.search(told) or _LEANING.match(told) or han_count(told) < _SHORTEST_HAN:
        return None
    return told if _TELLING.search(told) else None


def _item(source: Source) -> str:
    return f"- [{_literal(source.title)}](<{source.url.translate(_UNSAFE_IN_A_LINK)}>)"


def _literal(text: str) -> str:
    return _PUNCTUATION.sub(r"\\\1", text)
