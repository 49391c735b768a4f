"""The audit file: one JSON line a fetch."""

from __future__ import annotations

import dataclasses
import json
import threading
from pathlib import Path

from wcpod.sandbox.result import FetchRecord


class AuditFile:
    """Appends whole lines, from any thread. Never holds a secret: the policy refuses URLs with credentials."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    def append(self, record: FetchRecord) -> None:
        line = json.dumps(dataclasses.asdict(record), ensure_ascii=False) + "\n"
        with self._lock, self._path.open("a", encoding="utf-8") as file:
            file.write(line)
