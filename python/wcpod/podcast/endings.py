"""What it means when a model's turn does not end with a normal stop, and what to do."""

from __future__ import annotations

_MEANING = {
    "length": "its answer was cut off at the limit of tokens; raise --max-tokens, or choose another model",
    "content_filter": "the service withheld its answer; try again, or choose another model",
    "tool_calls": "it was still calling tools when it had used up its calls; try again, or choose another model",
}
_NO_REASON = "the service did not say how it ended; check that it speaks OpenAI's Chat Completions"


def unfinished(agent: str, finish_reason: str | None) -> str:
    """One line: which agent, how it ended, what that means."""
    line = f"{agent} ended with finish_reason {finish_reason!r}, not 'stop'"
    meaning = _MEANING.get(finish_reason or "", "" if finish_reason else _NO_REASON)
    return f"{line}: {meaning}" if meaning else line
