"""GenScriptAgent's part: compose the script, count it, adjust its length, give both versions."""

from __future__ import annotations

import re

from agent_framework import Content

from wcpod.exceptions import ModelError
from wcpod.podcast.hanzi import to_traditional
from wcpod.podcast.rehearsal.transcript import Transcript, guest_code
from wcpod.podcast.skills import GUARDRAILS, PERSONAS

_SHORTEST, _LONGEST = 1250, 1400
_MOST_TRIES = 4


def script_turn(transcript: Transcript) -> list[Content]:
    """The next answer of GenScriptAgent."""
    if transcript.turns == 0:
        return transcript.load(PERSONAS["GenScriptAgent"], GUARDRAILS)
    if transcript.turns == 1:
        return _compose(transcript, notes=0)
    last = transcript.expect("SCRIPT ", what="the script")
    counts = _printed_counts(last)
    if not _SHORTEST <= counts["han"] <= _LONGEST and transcript.turns <= _MOST_TRIES:
        wanted = (_SHORTEST + _LONGEST) // 2 - counts["base"]
        return _compose(transcript, notes=max(0, round(wanted / counts["per_note"])))
    simplified = transcript.printed("SCRIPT", within="")
    blocks = f"```simplified\n{simplified}\n```\n\n```traditional\n{to_traditional(simplified)}\n```"
    return [Content.from_text(blocks)]


def _compose(transcript: Transcript, *, notes: int) -> list[Content]:
    outline = transcript.printed("OUTLINE", within=transcript.request)
    day = re.search(r"The day is (\d{4}-\d{2}-\d{2})", transcript.request)
    if day is None:
        raise ModelError("rehearsal: the request names no day")
    return transcript.run(guest_code("compose_script", outline=outline, day=day[1], notes=notes))


def _printed_counts(text: str) -> dict[str, int]:
    return {key: int(number) for key, number in re.findall(r"^COUNT (\w+) (\d+)$", text, re.MULTILINE)}
