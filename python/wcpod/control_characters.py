"""Control characters of untrusted text, made visible before they reach a terminal, a log or a model."""

from __future__ import annotations

import re

# C0 without tab and newline, DEL, C1, the characters that reorder text, and lone surrogates.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

_LINE_END = re.compile("[\t\n\u2028\u2029]")


def neutralise(text: str) -> str:
    """`text` with control, escape, reordering and surrogate characters written out, such as `\\x1b`.

    Tabs and line ends stay; `\\r\\n` becomes `\\n`.
    """
    return _CONTROL.sub(
        lambda found: found[0].encode("unicode_escape", "surrogatepass").decode("ascii"), text.replace("\r\n", "\n")
    )


def one_line(text: str, most: int) -> str:
    """At most `most` characters of `text`, neutralised, on one line whatever counts as the end of a line."""
    cut = text if len(text) <= most else f"{text[:most]}…"
    return _LINE_END.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), neutralise(cut))
