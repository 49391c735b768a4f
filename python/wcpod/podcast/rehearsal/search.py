"""SearchAgent's part: read the front page and its stories, after one mistake, and tidy up where it hurts nobody."""

from __future__ import annotations

import json

from agent_framework import Content

from wcpod.podcast.rehearsal.part import Part
from wcpod.podcast.rehearsal.transcript import Transcript, guest_code
from wcpod.podcast.skills import GUARDRAILS


def search_turn(transcript: Transcript, part: Part) -> list[Content]:
    """The next answer of SearchAgent."""
    front, phrases = part.show.pages.start[0], part.phrases
    match transcript.turns:
        case 0:
            return transcript.load(part.show.skills.search, GUARDRAILS)
        case 1:
            return transcript.run(guest_code("search_first_try", front=front))
        case 2:
            transcript.expect("KeyError: 'body'", what="the traceback of its first try")
            code = guest_code(
                "search_stories", front=front, links=phrases.links, labels=phrases.labels, lists=phrases.lists
            )
            return transcript.run(code)
        case 3:
            transcript.expect("STORIES ", what="the list of stories")
            return transcript.run(guest_code("clean_up"))
        case 4:
            return transcript.run(guest_code("look_around"))
        case _:
            transcript.expect("all there", what="the clean start after its clean-up")
            stories = transcript.printed("STORIES", within="")
            return [Content.from_text("STORIES " + json.dumps(stories, ensure_ascii=False))]
