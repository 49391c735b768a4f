"""What runs start from, kept."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from wcpod import _bridge
from wcpod.sandbox.limits import MIB


class Snapshot:
    """The state of a sandbox: of its interpreter, its modules, its files. Sandboxes made from one share its memory."""

    def __init__(self, inner: _bridge.Snapshot) -> None:
        self._inner = inner

    @property
    def memory_mib(self) -> int:
        """Most memory that a run from it may have, in MiB."""
        return self._inner.memory_bytes // MIB

    @property
    def image_sha256(self) -> str:
        """SHA-256 of the guest image that it was made with, in hexadecimal."""
        return self._inner.image_sha256

    def save(self, path: str | PathLike[str]) -> None:
        """Writes it to the folder `path`, which must not exist or be empty.

        Raises:
            SnapshotError: the folder cannot be written.
        """
        self._inner.save(Path(path))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Snapshot:
        """Loads one that `save` wrote, on the same kind of processor, hypervisor and version.

        Its files are mapped, not read: they must stay as they are while it or a sandbox made from it lives. Digests are
        checked the first time, and whenever a file has changed since. Load only what you trust: a snapshot is code.

        Raises:
            SnapshotError: it is damaged, of another version or machine, or others may write to it.
        """
        return cls(_bridge.Snapshot.load(Path(path)))
