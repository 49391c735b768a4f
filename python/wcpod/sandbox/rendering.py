"""What a model gets to read of a run."""

from __future__ import annotations

import re
from collections.abc import Mapping

from wcpod.control_characters import neutralise, one_line
from wcpod.sandbox.result import ExecutionResult

KIND_NOTES = {
    "ok": "",
    "error": "",
    "timeout": "The code was stopped at its time limit.",
    "cancelled": "The run was cancelled.",
    "memory": "The code was stopped at its memory limit.",
    "output": "The code was stopped at its output limit.",
    "crash": "The sandbox crashed on this code and was rebuilt.",
}


MOST_FILES = 20
NAME_CHARACTERS = 100
DETAIL_CHARACTERS = 3000


def render_result(result: ExecutionResult) -> str:
    """The text that the model gets for an execution: how it ended, what was printed, the traceback.

    What the code made stands between tags that it cannot close itself, or, names of files, in quotes on one line that
    it cannot end. Control characters are made visible.
    """
    parts = [f"exit code {result.exit_code} ({result.kind})"]
    if KIND_NOTES[result.kind]:
        parts.append(KIND_NOTES[result.kind])
    detail = result.detail or ""
    if len(detail) > DETAIL_CHARACTERS:
        detail = f"{detail[:DETAIL_CHARACTERS]}… ({len(detail)} characters)"
    texts = (("detail", detail), ("stdout", result.stdout), ("stderr", result.stderr), ("value", result.value or ""))
    for tag, text in texts:
        if text:
            parts.append(f"<{tag}>\n{_closed_in(tag, neutralise(text)).rstrip(chr(10))}\n</{tag}>")
    if result.truncated is not None:
        parts.append("The output was longer than its limit, and its middle is missing. Print less.")
    if result.files:
        parts.append(_files(result.files))
    if not (result.stdout or result.stderr or result.value) and result.kind == "ok":
        parts.append("Nothing was printed. Use print(...) to see a result.")
    return "\n".join(parts)


def _files(files: Mapping[str, bytes]) -> str:
    """One line about the files, with their names in quotes."""
    named = sorted(files.items())
    listing = [f"{_quoted(name)} ({len(data)} bytes)" for name, data in named[:MOST_FILES]]
    if len(named) > MOST_FILES:
        listing.append(f"and {len(named) - MOST_FILES} more")
    return f"Files left in /output ({len(named)}): {', '.join(listing)}"


def _quoted(name: str) -> str:
    escaped = name[: NAME_CHARACTERS + 1].replace("\\", "\\\\").replace('"', '\\"')
    return f'"{one_line(escaped, NAME_CHARACTERS)}"'


def _closed_in(tag: str, text: str) -> str:
    return re.sub(rf"<(?=/\s*{tag}\b)", "&lt;", text, flags=re.IGNORECASE)
