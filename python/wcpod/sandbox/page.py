"""Text, title and links of a page, without fetching it."""

from __future__ import annotations

import json
from typing import Any

from wcpod import _bridge


def extract_page(html: bytes, *, content_type: str, url: str, limit: int = 8192) -> dict[str, Any]:
    """What `fetch_url` would make of `html`.

    Feeds (RSS, Atom, JSON) are read as title, description, link and date of each item; other text is as it is. Of an
    article BODY is its text, of any other page what is shown but navigation and the like.

    Args:
        html: the page's bytes, uncompressed.
        content_type: the value of its Content-Type header; when it is empty, the page is what it looks like.
        url: where it came from; links are made absolute against it.
        limit: most bytes of BODY, cut on a whole character.

    Returns:
        The keys STATUS ("ok"), URL, TITLE, DESCRIPTION, LINKS (absolute, without duplicates, stories first), BODY
        (readable text), LINK_TEXTS (`address` and `text` of the links that say something) when there are any, and
        NEXT_OFFSET when there is more.
    """
    page: dict[str, Any] = json.loads(_bridge.extract_page(html, content_type, url, limit))
    return page
