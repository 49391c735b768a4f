"""GenScriptAgent's part: compose the script, count it, fill it up to its length, give both versions."""

from __future__ import annotations

import re

from agent_framework import Content

from wcpod.podcast.hanzi import to_traditional
from wcpod.podcast.rehearsal.part import Part
from wcpod.podcast.rehearsal.phrases import inputs_of
from wcpod.podcast.rehearsal.transcript import Transcript, guest_code
from wcpod.podcast.skills import GUARDRAILS

_MOST_TRIES = 3


def script_turn(transcript: Transcript, part: Part) -> list[Content]:
    """The next answer of GenScriptAgent."""
    if transcript.turns == 0:
        return transcript.load(part.show.skills.script, GUARDRAILS)
    if transcript.turns == 1:
        return _compose(transcript, part, fill_to=0)
    last = transcript.expect("SCRIPT ", what="the script")
    counted = re.search(r"^COUNT han (\d+)$", last, re.MULTILINE)
    fewest, most = part.show.script.length
    if counted and int(counted[1]) < fewest and transcript.turns < _MOST_TRIES:
        return _compose(transcript, part, fill_to=fewest + (most - fewest) // 8)
    simplified = transcript.printed("SCRIPT", within="")
    traditional = to_traditional(simplified, part.show.words)
    return [Content.from_text(f"```simplified\n{simplified}\n```\n\n```traditional\n{traditional}\n```")]


def _compose(transcript: Transcript, part: Part, *, fill_to: int) -> list[Content]:
    show, day = part.show, transcript.day()
    return transcript.run(
        guest_code(
            "compose_script",
            outline=transcript.printed("OUTLINE", within=transcript.request),
            phrases=part.phrases.model_dump(exclude={"links", "labels", "lists"}),
            facts=[fact.text for fact in show.facts_on(day)],
            season=show.out_of_season(day) or "",
            day=day.isoformat(),
            fill_to=fill_to,
            **inputs_of(show),
        )
    )
