"""What a model gets to read of a run."""

from __future__ import annotations

import re

from wcpod.control_characters import neutralise
from wcpod.sandbox.result import ExecutionResult

_KIND_NOTES = {
    "ok": "",
    "error": "",
    "timeout": "The code was stopped at its time limit.",
    "cancelled": "The run was cancelled.",
    "memory": "The code was stopped at its memory limit.",
    "output": "The code was stopped at its output limit.",
    "crash": "The sandbox crashed on this code and was rebuilt.",
}


def render_result(result: ExecutionResult) -> str:
    """The text that the model gets for an execution: how it ended, what was printed, the traceback.

    Output stands between tags that it cannot close itself, and control characters are made visible.
    """
    parts = [f"exit code {result.exit_code} ({result.kind})"]
    parts += [note for note in (_KIND_NOTES[result.kind], neutralise(result.detail or "")) if note]
    for tag, text in (("stdout", result.stdout), ("stderr", result.stderr), ("value", result.value or "")):
        if text:
            parts.append(f"<{tag}>\n{_closed_in(tag, neutralise(text)).rstrip(chr(10))}\n</{tag}>")
    if result.truncated is not None:
        parts.append("The output was longer than its limit, and its middle is missing. Print less.")
    if result.files:
        listing = ", ".join(f"{neutralise(name)} ({len(data)} bytes)" for name, data in sorted(result.files.items()))
        parts.append(f"Files left in /output: {listing}")
    if not (result.stdout or result.stderr or result.value) and result.kind == "ok":
        parts.append("Nothing was printed. Use print(...) to see a result.")
    return "\n".join(parts)


def _closed_in(tag: str, text: str) -> str:
    return re.sub(rf"<(?=/\s*{tag}\b)", "&lt;", text, flags=re.IGNORECASE)
