"""The models that can write an episode, each behind the same small face. Their packages are imported on demand.

rehearsal   a scripted stand-in, no network: the default
foundry     Microsoft Foundry, signed in through the Azure CLI          (extra `foundry`)
openai      any server that speaks OpenAI's Chat Completions            (extra `openai`)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from agent_framework import FunctionInvocationConfiguration

from wcpod.exceptions import ModelNotConfigured
from wcpod.podcast.models.settings import DEFAULT_SETTINGS, ModelSettings

if TYPE_CHECKING:
    from wcpod.podcast.show import Show

ModelKind = Literal["rehearsal", "foundry", "openai"]
MODEL_KINDS: tuple[ModelKind, ...] = get_args(ModelKind)


@dataclass(frozen=True, slots=True)
class Model:
    """A model to write with.

    Attributes:
        kind: One of `MODEL_KINDS`.
        name: The deployment's or model's name.
        rehearsal: Whether this is the scripted stand-in; everything that it makes says so.
        client: Makes the chat client of an agent, given the agent's name.
        options: Chat options for every request.
    """

    kind: ModelKind
    name: str
    client: Callable[[str], Any]
    rehearsal: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)


def open_model(
    kind: str,
    *,
    name: str | None = None,
    base_url: str | None = None,
    settings: ModelSettings = DEFAULT_SETTINGS,
    show: Show | None = None,
) -> Model:
    """The model of that kind, ready to use.

    Args:
        kind: One of `MODEL_KINDS`.
        name: Model or deployment; the default comes from the environment of that kind.
        base_url: Address of the server, for `openai`.
        settings: How it is asked; the rehearsal asks nobody.
        show: What is rehearsed, for `rehearsal`; the default show if none is given.

    Raises:
        ModelNotConfigured: if a setting or a package is missing; the message says which and how to get it.
    """
    if base_url is not None and kind != "openai":
        raise ModelNotConfigured(f"a base URL goes with --model openai, not with {kind}")
    if kind == "rehearsal":
        from wcpod.podcast.models.rehearsal import open_rehearsal

        return open_rehearsal(show)
    if kind == "foundry":
        from wcpod.podcast.models.foundry import open_foundry

        return open_foundry(name=name, settings=settings)
    if kind == "openai":
        from wcpod.podcast.models.openai import open_openai

        return open_openai(name=name, base_url=base_url, settings=settings)
    raise ModelNotConfigured(f"there is no model {kind!r}; choose one of {', '.join(MODEL_KINDS)}")


def loop_limits() -> FunctionInvocationConfiguration:
    """Limits of the function-calling loop: one tool call at a time, and an end to a model that never finishes."""
    return {"max_iterations": 24, "max_duration_seconds": 900.0, "allow_concurrent_invocation": False}
