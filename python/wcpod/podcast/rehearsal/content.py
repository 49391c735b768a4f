"""ContentAgent's part: order the stories and work out what each of them is about."""

from __future__ import annotations

import json

from agent_framework import Content

from wcpod.podcast.rehearsal.transcript import Transcript, guest_code
from wcpod.podcast.skills import GUARDRAILS, PERSONAS


def content_turn(transcript: Transcript) -> list[Content]:
    """The next answer of ContentAgent."""
    match transcript.turns:
        case 0:
            return transcript.load(PERSONAS["ContentAgent"], GUARDRAILS)
        case 1:
            stories = transcript.printed("STORIES", within=transcript.request)
            return transcript.run(guest_code("shape_outline", stories=stories))
        case _:
            transcript.expect("OUTLINE ", what="the outline")
            outline = transcript.printed("OUTLINE", within="")
            return [Content.from_text("OUTLINE " + json.dumps(outline, ensure_ascii=False))]
