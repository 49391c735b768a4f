"""A model for tests that says what it is told to, through the framework's real function-calling loop."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agent_framework import (
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FinishReasonLiteral,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
)
from agent_framework.observability import ChatTelemetryLayer

from wcpod.podcast.models import Model, loop_limits
from wcpod.podcast.script_check import ScriptRules

SCRIPTS = "```simplified\n各位听众，早上好。再见。\n```\n```traditional\n各位聽眾，早上好。再見。\n```"
PERSONAS = {"SearchAgent": "search-worldcup", "ContentAgent": "shape-content", "GenScriptAgent": "write-script"}

ANY_LENGTH = ScriptRules(shortest=0, longest=10_000, retries=0, sources=0)

Turn = list[Content] | str


def call(tool: str, call_id: str = "call-1", **arguments: Any) -> Content:
    """A call of a tool by the model."""
    return Content.from_function_call(call_id, tool, arguments=json.dumps(arguments))


class ScriptedClient(
    FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], ChatTelemetryLayer[Any], BaseChatClient[Any]
):
    """Takes one turn after the other. A string is a final text; `finish_reason` is that of every final text."""

    OTEL_PROVIDER_NAME = "scripted"

    def __init__(self, turns: Sequence[Turn], *, finish_reason: FinishReasonLiteral = "stop") -> None:
        super().__init__(function_invocation_configuration=loop_limits())
        self.turns = list(turns)
        self.finish_reason = finish_reason
        self.requests: list[Sequence[Message]] = []
        self.tools: list[list[str]] = []

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **_kwargs: Any
    ) -> Any:
        self.requests.append(list(messages))
        self.tools.append([tool.name for tool in options.get("tools") or []])
        turn = self.turns.pop(0)
        contents = [Content.from_text(turn)] if isinstance(turn, str) else turn
        calls = any(content.type == "function_call" for content in contents)
        finish: FinishReasonLiteral = "tool_calls" if calls else self.finish_reason

        async def respond() -> ChatResponse[Any]:
            return ChatResponse(messages=Message("assistant", contents), finish_reason=finish, model="scripted")

        async def updates() -> Any:
            yield ChatResponseUpdate(
                contents=contents, role="assistant", finish_reason=finish, message_id="m", response_id="r"
            )

        return ResponseStream(updates(), finalizer=ChatResponse.from_updates) if stream else respond()

    def results(self) -> list[str]:
        """The tool results that the last request carried."""
        return [str(c.result) for message in self.requests[-1] for c in message.contents if c.type == "function_result"]


def ordinary_turns(agent: str) -> list[Turn]:
    """Load the skill, run code once, finish."""
    return [
        [call("load_skill", f"{agent}-1", skill_name=PERSONAS[agent])],
        [call("execute_code", f"{agent}-2", code="print('ok')")],
        SCRIPTS,
    ]


def scripted_model(turns: Callable[[str], Sequence[Turn]] = ordinary_turns, **options: Any) -> Model:
    """A model whose agents take these turns."""
    return Model(
        kind="rehearsal", name="scripted", client=lambda agent: ScriptedClient(turns(agent), **options), rehearsal=True
    )
