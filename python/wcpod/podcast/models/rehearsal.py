"""The rehearsal: a scripted stand-in for a model, through the framework's real function-calling loop.

It loads its skills, writes code, and answers with what that code printed in the sandbox. There is no network and no
model in it, and everything that it makes says that it is a rehearsal.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Sequence
from typing import Any, ClassVar

from agent_framework import (
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
)
from agent_framework.observability import ChatTelemetryLayer

from wcpod.podcast.models import Model, loop_limits
from wcpod.podcast.rehearsal.content import content_turn
from wcpod.podcast.rehearsal.part import Part
from wcpod.podcast.rehearsal.script import script_turn
from wcpod.podcast.rehearsal.search import search_turn
from wcpod.podcast.rehearsal.transcript import Transcript
from wcpod.podcast.show import Show, default_show
from wcpod.shows import DEFAULT_SHOW, SHOWS

SAMPLE_PAGES = SHOWS / DEFAULT_SHOW / "rehearsal" / "pages"
NAME = "rehearsal"

_PARTS: dict[str, Callable[[Transcript, Part], list[Content]]] = {
    "SearchAgent": search_turn,
    "ContentAgent": content_turn,
    "GenScriptAgent": script_turn,
}


def open_rehearsal(show: Show | None = None) -> Model:
    """The rehearsal of a show as a model. It reads the show's sample pages, or others of that shape.

    Raises:
        ShowError, ModelNotConfigured: if the show cannot be rehearsed.
    """
    part = Part.of(show or default_show())
    return Model(kind="rehearsal", name=NAME, client=lambda agent: RehearsalClient(agent, part), rehearsal=True)


class RehearsalClient(
    FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], ChatTelemetryLayer[Any], BaseChatClient[Any]
):
    """The chat client of one agent's part. The order of the bases is the order of the layers."""

    OTEL_PROVIDER_NAME: ClassVar[str] = "wcpod.rehearsal"

    def __init__(self, agent: str, part: Part) -> None:
        super().__init__(function_invocation_configuration=loop_limits())
        self._agent = agent
        self._part = part

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, **_options: Any
    ) -> Awaitable[ChatResponse[Any]] | ResponseStream[ChatResponseUpdate, ChatResponse[Any]]:
        transcript = Transcript.of(self._agent, messages)
        contents = _PARTS[self._agent](transcript, self._part)
        calls = any(content.type == "function_call" for content in contents)
        identity = f"rehearsal-{self._agent}-{transcript.turns + 1}"

        async def respond() -> ChatResponse[Any]:
            return ChatResponse(
                messages=Message("assistant", contents),
                response_id=identity,
                model=NAME,
                finish_reason="tool_calls" if calls else "stop",
            )

        async def updates() -> AsyncIterable[ChatResponseUpdate]:
            yield ChatResponseUpdate(
                contents=contents,
                role="assistant",
                response_id=identity,
                message_id=identity,
                model=NAME,
                finish_reason="tool_calls" if calls else "stop",
            )

        if stream:
            return ResponseStream(updates(), finalizer=ChatResponse.from_updates)
        return respond()
