"""The pages that a run has read, as the sandbox's host recorded them: what the editor compares a script with.

The folder is an archive (`HyperlightRuntime(record=)`), so what stands in it is what the host sent into the sandbox,
and no agent can write into it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from wcpod.podcast.evidence import ReadPage
from wcpod.podcast.plain_files import read_plain_file
from wcpod.podcast.run_record import TimedCall
from wcpod.sandbox.page import extract_page

_INDEX = "index.jsonl"
_LONGEST = 512 * 1024


def pages_read(folder: Path, calls: Iterable[TimedCall]) -> list[ReadPage]:
    """Each page once that was fetched well in this run, in the order of the fetches.

    A page counts if a call of this run names its address and the hash of its bytes; what else lies in the folder, or
    was changed since, does not.
    """
    recorded = _index(folder)
    pages: dict[str, ReadPage] = {}
    for timed in calls:
        fetch = timed.call.fetch
        if timed.call.status != "ok" or fetch is None or fetch.sha256 is None or fetch.final_url in pages:
            continue
        entry = recorded.get((fetch.final_url, fetch.sha256))
        if entry is None or urlsplit(fetch.final_url).scheme != "https":
            continue
        page = _page(folder, entry, title=fetch.title or "")
        if page is not None:
            pages[fetch.final_url] = page
    return list(pages.values())


def _index(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """(address, hash) → entry. A line that is none, such as one torn by a crash, is left out."""
    try:
        lines = read_plain_file(folder / _INDEX).decode("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    entries = {}
    for line in lines:
        try:
            entry = json.loads(line)
            entries[str(entry["url"]), str(entry["sha256"])] = entry
        except (ValueError, KeyError, TypeError):
            continue
    return entries


def _page(folder: Path, entry: dict[str, Any], *, title: str) -> ReadPage | None:
    file = Path(str(entry.get("file") or ""))
    if file.is_absolute() or ".." in file.parts or not file.name:
        return None
    try:
        data = read_plain_file(folder / file)
    except OSError:
        return None
    if hashlib.sha256(data).hexdigest() != entry["sha256"]:
        return None
    kind = str(entry.get("content_type") or "")
    page = extract_page(data, content_type=kind, url=entry["url"], limit=_LONGEST)
    text = "\n".join(part for part in (page["TITLE"], page["DESCRIPTION"], page["BODY"]) if part)
    return ReadPage(url=entry["url"], title=page["TITLE"] or title, sha256=entry["sha256"], text=text)
