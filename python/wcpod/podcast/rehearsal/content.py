"""ContentAgent's part: choose the day's stories, and work out what each of them is about."""

from __future__ import annotations

import json

from agent_framework import Content

from wcpod.podcast.rehearsal.part import Part
from wcpod.podcast.rehearsal.transcript import Transcript, guest_code
from wcpod.podcast.skills import GUARDRAILS


def content_turn(transcript: Transcript, part: Part) -> list[Content]:
    """The next answer of ContentAgent."""
    match transcript.turns:
        case 0:
            return transcript.load(part.show.skills.content, GUARDRAILS)
        case 1:
            stories = transcript.printed("STORIES", within=transcript.request)
            wanted = [[story.kind, story.take] for story in part.phrases.stories]
            code = guest_code("shape_outline", stories=stories, wanted=wanted, day=transcript.day().isoformat())
            return transcript.run(code.replace("# INPUT_work_out\n", part.outline_code))
        case _:
            transcript.expect("OUTLINE ", what="the outline")
            outline = transcript.printed("OUTLINE", within="")
            return [Content.from_text("OUTLINE " + json.dumps(outline, ensure_ascii=False))]
