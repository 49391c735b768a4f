"""What an agent's model has before it when its turn comes, and what it can answer with."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from agent_framework import Content, Message

from wcpod.exceptions import ModelError

_MODULE_PRAGMA = re.compile(r"^# (ruff|mypy):.*\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Transcript:
    """The conversation so far: the request, how many turns the model has had, the text of each tool result."""

    agent: str
    request: str
    turns: int
    results: tuple[str, ...]

    @classmethod
    def of(cls, agent: str, messages: Sequence[Message]) -> Transcript:
        """Read a conversation. Nothing is remembered elsewhere, so a resumed run goes on where it was."""
        contents = [content for message in messages for content in message.contents]
        return cls(
            agent=agent,
            request="\n".join(message.text for message in messages if message.role == "user"),
            turns=sum(message.role == "assistant" for message in messages),
            results=tuple(str(content.result) for content in contents if content.type == "function_result"),
        )

    def day(self) -> dt.date:
        """The day that the request names."""
        found = re.search(r"^The day is (\d{4}-\d{2}-\d{2})", self.request)
        if found is None:
            raise ModelError("rehearsal: the request names no day")
        return dt.date.fromisoformat(found[1])

    def call(self, tool: str, **arguments: Any) -> Content:
        """A call of a tool. Its id is unique across the agents of a run."""
        number = f"{self.turns + 1}-{arguments.get('skill_name', tool)}"
        return Content.from_function_call(
            f"rehearsal-{self.agent}-{number}", tool, arguments=json.dumps(arguments, ensure_ascii=False)
        )

    def load(self, *skills: str) -> list[Content]:
        """Calls that load these skills."""
        return [self.call("load_skill", skill_name=skill) for skill in skills]

    def run(self, code: str) -> list[Content]:
        """A call that runs code."""
        return [self.call("execute_code", code=code)]

    def expect(self, needle: str, *, what: str) -> str:
        """The last tool result, which must hold `needle`: the model acts on what it sees, and on nothing else."""
        last = self.results[-1] if self.results else ""
        if needle not in last:
            raise ModelError(f"rehearsal: {what} did not reach {self.agent}; the last result was: {last[:500]!r}")
        return last

    def printed(self, marker: str, *, within: str) -> Any:
        """The JSON that code printed on a line after `marker`, from the newest result that has one."""
        for text in (within, *reversed(self.results)):
            # A closing tag is escaped on its way to the model.
            if found := re.search(rf"^{marker} (.*)$", text, re.MULTILINE):
                return json.loads(found[1].replace("&lt;/", "</"))
        raise ModelError(f"rehearsal: {self.agent} found no {marker} in what it was given")


def guest_code(name: str, **inputs: Any) -> str:
    """The code of that name, with each input written into it as a JSON literal for the placeholder `INPUT_<name>`."""
    code = resources.files(__package__).joinpath("guest_code", f"{name}.py").read_text(encoding="utf-8")
    code = _MODULE_PRAGMA.sub("", code)
    for key, value in inputs.items():
        literal = repr(json.dumps(value, ensure_ascii=False))
        code = code.replace(f'"INPUT_{key}"', literal)
    return code
