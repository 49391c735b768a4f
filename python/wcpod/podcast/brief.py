"""What the agents are told of their show: one short text for each, put below the day in their request."""

from __future__ import annotations

import datetime as dt

from wcpod.podcast.script_check import ScriptRules
from wcpod.podcast.show import Show

_SEARCH = """\
The show: {title}, about {topic}.
fetch_url reads these hosts only: {hosts}. Start pages: {start}.
Read at least {sources} pages that say something."""
_CONTENT = """\
The show: {title}, about {topic}. The script has {shortest} to {longest} Han characters."""
_SCRIPT = """\
The show: {title}, in traditional characters {traditional}. The script has {shortest} to {longest} Han characters.
It greets with one of: {greetings}. It says goodbye with one of: {goodbyes}.
Besides Han text and Han punctuation these characters may stand: {allowed}."""
_OUT_OF_SEASON = """\
On this day there is no such event going on: {note}. Say so at the start, and speak of what is over as past."""
_FACTS = """\
These facts hold today and may be said without a page:
{facts}"""
_NAMES = """\
Usual forms of names (simplified, Taiwan):
{names}"""


def search_brief(show: Show, rules: ScriptRules, day: dt.date) -> str:
    """For SearchAgent: where to look, and what is known already."""
    text = _SEARCH.format(
        title=show.title.simplified,
        topic=show.topic,
        hosts=", ".join(show.pages.hosts),
        start=", ".join(show.pages.start),
        sources=rules.sources,
    )
    return _joined(text, _season(show, day), _facts(show, day))


def content_brief(show: Show, rules: ScriptRules, day: dt.date) -> str:
    """For ContentAgent: how long the script is, and what may be explained in it."""
    text = _CONTENT.format(
        title=show.title.simplified, topic=show.topic, shortest=rules.shortest, longest=rules.longest
    )
    return _joined(text, _season(show, day), _facts(show, day))


def script_brief(show: Show, rules: ScriptRules, day: dt.date, material: str) -> str:
    """For GenScriptAgent: the rules that its script is checked by, and the names that its material speaks of."""
    text = _SCRIPT.format(
        title=show.title.simplified,
        traditional=show.title.traditional,
        shortest=rules.shortest,
        longest=rules.longest,
        greetings="、".join(rules.greetings),
        goodbyes="、".join(rules.goodbyes),
        allowed=" ".join(rules.allowed) or "none",
    )
    named = [
        f"{name.pages[0] if name.pages else name.simplified}: {name.simplified}, {name.traditional}"
        for name in show.names
        if any(spelling in material for spelling in (*name.pages, name.simplified))
    ]
    names = _NAMES.format(names="\n".join(named)) if named else ""
    return _joined(text, _season(show, day), _facts(show, day), names)


def _season(show: Show, day: dt.date) -> str:
    note = show.out_of_season(day)
    return "" if note is None else _OUT_OF_SEASON.format(note=note)


def _facts(show: Show, day: dt.date) -> str:
    facts = show.facts_on(day)
    return _FACTS.format(facts="\n".join(f"- {fact.text}" for fact in facts)) if facts else ""


def _joined(*parts: str) -> str:
    return "\n".join(part for part in parts if part)
