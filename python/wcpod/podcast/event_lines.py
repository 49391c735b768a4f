"""Progress of a run for programs: one JSON object a line."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import time
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from wcpod.podcast.progress import Event

_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")


class EventLines:
    """Writes each event as `{"event": "step_started", "seconds": 0.12, ...}`, with the fields of the event.

    ASCII only, so a line is a line whatever a page or a model wrote. `seconds` counts from the start.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._started = time.monotonic()

    def __call__(self, event: Event) -> None:
        """Write the event."""
        self.write(_CAPITAL.sub("_", type(event).__name__).lower(), **_fields(event))

    def write(self, event: str, **fields: Any) -> None:
        """Write an event of that name."""
        line = {"event": event, "seconds": round(time.monotonic() - self._started, 4), **fields}
        # A reader that went away or a full disk is no reason to end the run.
        with contextlib.suppress(OSError):
            print(json.dumps(line, default=str), file=self._stream, flush=True)


def _fields(event: Event) -> dict[str, Any]:
    from wcpod.podcast.progress import CodeEnded  # it imports the framework, and a failed start is told before that

    if not isinstance(event, CodeEnded):
        fields = dataclasses.asdict(event)
        if "seconds" in fields:
            fields["took"] = fields.pop("seconds")
        return fields
    result = event.result
    return {
        "agent": event.agent,
        "kind": result.kind,
        "exit_code": result.exit_code,
        "stdout": result.stdout,
        "stderr": result.stderr,
        "took": result.usage.seconds,
    }
