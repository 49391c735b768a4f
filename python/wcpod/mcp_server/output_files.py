"""Files that code left below /output, for the client: small ones in the answer, the others as resources to read."""

from __future__ import annotations

import base64
import mimetypes
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from mcp_types import (
    BlobResourceContents,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    Resource,
    ResourceLink,
    TextResourceContents,
)

_SCHEME = "wcpod://output/"
_IN_ANSWER = 256 * 1024
"""Most bytes of all files of an answer that stand in it."""
_KEPT_BYTES = 64 * 1024 * 1024
_KEPT_FILES = 256
_IMAGES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
}


@dataclass(frozen=True, slots=True)
class _File:
    uri: str
    name: str
    media_type: str
    data: bytes

    def contents(self) -> TextResourceContents | BlobResourceContents:
        """The whole file: as text where it is UTF-8."""
        try:
            text = self.data.decode("utf-8")
        except UnicodeDecodeError:
            blob = base64.b64encode(self.data).decode("ascii")
            return BlobResourceContents(uri=self.uri, mime_type=self.media_type, blob=blob)
        return TextResourceContents(uri=self.uri, mime_type=self.media_type, text=text)


class OutputFiles:
    """The files of the latest executions, by address. The oldest go first."""

    def __init__(self) -> None:
        self._files: dict[str, _File] = {}
        self._bytes = 0

    def keep(self, files: Mapping[str, bytes]) -> list[ContentBlock]:
        """Keep the files of an execution; returns what its answer says of them.

        Pictures come as pictures, other files as embedded resources; what is too large for an answer as a link.
        """
        run, space, blocks = secrets.token_hex(8), _IN_ANSWER, list[ContentBlock]()
        for name, data in sorted(files.items()):
            shown = name.encode("utf-8", "backslashreplace").decode("utf-8")
            file = _File(f"{_SCHEME}{run}/{quote(shown)}", shown, _media_type(shown, data), data)
            self._add(file)
            if len(data) <= space:
                space -= len(data)
                blocks.append(_embedded(file))
            else:
                blocks.append(ResourceLink(uri=file.uri, name=shown, mime_type=file.media_type, size=len(data)))
        return blocks

    def read(self, uri: str) -> TextResourceContents | BlobResourceContents | None:
        """A kept file, or None if there is none of that address (any more)."""
        file = self._files.get(uri)
        return None if file is None else file.contents()

    def resources(self) -> list[Resource]:
        """All kept files, the latest first."""
        return [
            Resource(uri=file.uri, name=file.name, mime_type=file.media_type, size=len(file.data))
            for file in reversed(self._files.values())
        ]

    def _add(self, file: _File) -> None:
        self._files[file.uri] = file
        self._bytes += len(file.data)
        while self._bytes > _KEPT_BYTES or len(self._files) > _KEPT_FILES:
            self._bytes -= len(self._files.pop(next(iter(self._files))).data)


def _embedded(file: _File) -> ContentBlock:
    if file.media_type in _IMAGES.values() or file.media_type == "image/webp":
        return ImageContent(data=base64.b64encode(file.data).decode("ascii"), mime_type=file.media_type)
    return EmbeddedResource(resource=file.contents())


def _media_type(name: str, data: bytes) -> str:
    """By content for the pictures that clients show, by name for the rest: code chooses the names."""
    for magic, media_type in _IMAGES.items():
        if data.startswith(magic):
            return media_type
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    guessed, encoding = mimetypes.guess_type(name, strict=False)
    if guessed is None or encoding is not None or guessed in (*_IMAGES.values(), "image/webp"):
        return "application/octet-stream"
    return guessed
