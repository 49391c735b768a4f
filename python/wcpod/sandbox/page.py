"""Text, title and links of a page, without fetching it."""

from __future__ import annotations

import json
from typing import Any

from wcpod import _bridge


def extract_page(html: bytes, *, content_type: str, url: str, limit: int = 8192) -> dict[str, Any]:
    """What `fetch_url` would make of `html`.

    Args:
        html: the page's bytes, uncompressed.
        content_type: the value of its Content-Type header, which may be empty.
        url: where it came from; links are made absolute against it.
        limit: most bytes of BODY, cut on a whole character.

    Returns:
        The keys STATUS ("ok"), URL, TITLE, DESCRIPTION, LINKS (absolute, without duplicates), BODY (readable text), and
        NEXT_OFFSET when there is more.
    """
    page: dict[str, Any] = json.loads(_bridge.extract_page(html, content_type, url, limit))
    return page
