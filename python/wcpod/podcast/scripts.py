"""The two scripts of an episode: found in the last agent's text, and put on disk. No model in between.

`parse_scripts` reads the text as CommonMark, so what is a fenced block and where it ends is not a matter of taste.
`save_scripts` writes exactly the two parsed blocks; neither is converted from the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from wcpod.exceptions import ScriptFormatError
from wcpod.podcast.day_folder import DayFolder

_LABELS = {
    "simplified": "simplified",
    "simple": "simplified",
    "zh-hans": "simplified",
    "zh-cn": "simplified",
    "简体": "simplified",
    "简体中文": "simplified",
    "traditional": "traditional",
    "tranditional": "traditional",
    "zh-hant": "traditional",
    "zh-tw": "traditional",
    "繁体": "traditional",
    "繁體": "traditional",
    "繁体中文": "traditional",
    "繁體中文": "traditional",
}
_NUMBERS = ("no fenced block", "one fenced block", "two fenced blocks", "three fenced blocks")


@dataclass(frozen=True, slots=True)
class Scripts:
    """The two versions of one script, without blank lines around them and without a final line end."""

    simplified: str
    traditional: str


@dataclass(frozen=True, slots=True)
class _Block:
    line: int
    label: str | None
    text: str
    closed: bool


def parse_scripts(text: str) -> Scripts:
    """The two scripts in an agent's text.

    The text holds exactly two fenced code blocks (backticks or tildes, by the rules of CommonMark). A block labelled
    `simplified` or `traditional` is that version wherever it stands; without labels the first is the simplified one.

    Raises:
        ScriptFormatError: if there are not exactly two, one is empty or never closed, both carry the same label, or
            the text cannot be stored as UTF-8. The message says what was found.
    """
    blocks = _fenced_blocks(text)
    if len(blocks) != 2:
        raise ScriptFormatError(f"expected exactly two fenced blocks, found {_found(blocks)}")
    for ordinal, block in zip(("first", "second"), blocks, strict=True):
        if not block.closed:
            raise ScriptFormatError(f"the {ordinal} fenced block (line {block.line}) is never closed")
        if not block.text.strip():
            raise ScriptFormatError(f"the {ordinal} fenced block (line {block.line}) is empty")
    first, second = blocks
    if first.label is not None and first.label == second.label:
        raise ScriptFormatError(f"both fenced blocks are labelled {first.label}")
    if first.label == "traditional" or second.label == "simplified":
        first, second = second, first
    return Scripts(simplified=first.text, traditional=second.text)


def save_scripts(
    scripts: Scripts,
    folder: DayFolder,
    episode: Mapping[str, Any],
    products: Mapping[str, bytes] | None = None,
) -> tuple[Path, ...]:
    """Write both scripts, the products and `episode.json` into the folder of the day: all of them, or none.

    Each file ends with exactly one line end. Files that the day already had stay as they were on any error.

    Returns:
        The paths of the simplified script, the traditional script, each product and `episode.json`.

    Raises:
        PipelineError: if they cannot be written, for example because the disk is full.
    """
    return folder.publish(scripts.simplified + "\n", scripts.traditional + "\n", episode, products)


def _fenced_blocks(text: str) -> list[_Block]:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ScriptFormatError(f"the text is not valid Unicode at character {error.start}") from error
    # A fence inside raw HTML is still a fence to the model that wrote it.
    markdown = MarkdownIt("commonmark").disable("html_block")
    tokens = markdown.parse(text.removeprefix("\ufeff"))
    return [_block(token) for token in tokens if token.type == "fence"]


def _block(token: Token) -> _Block:
    start, end = token.map or [0, 0]
    content_lines = token.content.count("\n") + (not token.content.endswith("\n") and token.content != "")
    label = token.info.strip().split(maxsplit=1)[:1]
    return _Block(
        line=start + 1,
        label=_LABELS.get(label[0].lower()) if label else None,
        text=_without_blank_ends(token.content),
        # The map covers both fence lines only if there is a closing one.
        closed=end - start - content_lines == 2,
    )


def _without_blank_ends(text: str) -> str:
    lines = text.split("\n")
    while lines and not lines[0].strip():
        lines.pop(0)
    while lines and not lines[-1].strip():
        lines.pop()
    return "\n".join(lines)


def _found(blocks: list[_Block]) -> str:
    count = _NUMBERS[len(blocks)] if len(blocks) < len(_NUMBERS) else f"{len(blocks)} fenced blocks"
    if not blocks:
        return count
    unclosed = ", not closed" if not blocks[-1].closed else ""
    return f"{count} (line {', '.join(str(block.line) for block in blocks)}{unclosed})"
