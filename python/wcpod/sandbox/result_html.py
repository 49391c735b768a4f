"""A result as a notebook shows it: how it ended, what was printed, the pictures that it left."""

from __future__ import annotations

import base64
import html
import mimetypes
from typing import TYPE_CHECKING

from wcpod.control_characters import neutralise

if TYPE_CHECKING:
    from wcpod.sandbox.result import ExecutionResult

_CHARACTERS = 20_000
_FILES = 20
_PICTURE_BYTES = 1 << 20
_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/svg+xml", "image/webp")


def result_html(result: ExecutionResult) -> str:
    """HTML without scripts. Whatever the code made is escaped; a picture is an `<img>`, in which no script runs."""
    parts = [f"<p><b>{result.kind}</b>, exit code {result.exit_code}, {result.usage.seconds:.3f} s</p>"]
    if result.detail:
        parts.append(f"<p>{_text(result.detail)}</p>")
    for name, text in (("stdout", result.stdout), ("stderr", result.stderr), ("value", result.value or "")):
        if text:
            parts.append(f'<pre title="{name}">{_text(text)}</pre>')
    parts += [_file(name, data) for name, data in sorted(result.files.items())[:_FILES]]
    if len(result.files) > _FILES:
        parts.append(f"<p>and {len(result.files) - _FILES} more files</p>")
    return f"<div>{''.join(parts)}</div>"


def _text(text: str) -> str:
    cut = text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]}…"
    return html.escape(neutralise(cut))


def _file(name: str, data: bytes) -> str:
    shown = f"/output/{_text(name)} ({len(data)} bytes)"
    media_type = mimetypes.guess_type(name)[0]
    if media_type not in _PICTURES or len(data) > _PICTURE_BYTES:
        return f"<p>{shown}</p>"
    content = base64.b64encode(data).decode("ascii")
    return f'<figure><img src="data:{media_type};base64,{content}"><figcaption>{shown}</figcaption></figure>'
