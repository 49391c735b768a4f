"""Which phrases OpenCC knows: the dictionaries that its `s2twp` cuts a text with, read from the installed package."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import marisa_trie  # type: ignore[import-not-found]
import opencc

_HEADER = b"OPENCC_MARISA_0.2.5"
_DATA = Path(opencc.__file__).parent / "clib" / "share" / "opencc"


@functools.cache
def opencc_phrases() -> frozenset[str]:
    """Every phrase of two or more simplified characters that OpenCC converts as one."""
    return frozenset(phrase for name in _dictionaries() for phrase in _keys(_DATA / name))


def _dictionaries() -> Iterator[str]:
    config = json.loads((_DATA / "s2twp.json").read_text(encoding="utf-8"))
    yield from _files(config["segmentation"]["dict"])


def _files(entry: dict[str, Any]) -> Iterator[str]:
    if entry["type"] == "group":
        for part in entry["dicts"]:
            yield from _files(part)
    else:
        yield entry["file"]


def _keys(file: Path) -> Iterator[str]:
    data = file.read_bytes()
    if not data.startswith(_HEADER):
        raise RuntimeError(f"{file} is not a dictionary of a form that wcpod reads; install opencc>=1.4,<2 as a wheel")
    yield from marisa_trie.Trie().frombytes(data[len(_HEADER) :])
