"""What a Han character is."""

from __future__ import annotations

import re

HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af〇]")


def han_count(text: str) -> int:
    """How many Han characters `text` holds; punctuation, digits and letters do not count."""
    return len(han_characters(text))


def han_characters(text: str) -> str:
    """The Han characters of `text`, and nothing else of it."""
    return "".join(HAN.findall(text))
