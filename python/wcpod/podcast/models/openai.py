"""Any server that speaks OpenAI's Chat Completions, a local one as well."""

from __future__ import annotations

import os
from typing import Any

from wcpod.exceptions import ModelNotConfigured
from wcpod.podcast.models import MAX_RETRIES, REQUEST_SECONDS, Model, loop_limits

_KEY = "OPENAI_API_KEY"
_MODEL = "OPENAI_MODEL"
_BASE_URL = "OPENAI_BASE_URL"


def open_openai(*, name: str | None = None, base_url: str | None = None) -> Model:
    """The model `name` (default: $OPENAI_MODEL) of the server at `base_url` (default: $OPENAI_BASE_URL, or OpenAI's).

    A server of one's own needs no $OPENAI_API_KEY.

    Raises:
        ModelNotConfigured: if the package or a variable is missing.
    """
    try:
        from agent_framework.openai import OpenAIChatCompletionClient
        from openai import AsyncOpenAI
    except ImportError as error:
        raise ModelNotConfigured("the model openai needs more packages: pip install 'wcpod[podcast,openai]'") from error

    model = name or os.environ.get(_MODEL)
    server = base_url or os.environ.get(_BASE_URL)
    key = os.environ.get(_KEY)
    missing = [] if model else [f"set {_MODEL}, or pass --model-name"]
    if not key and not server:
        missing.append(f"set {_KEY}, or pass --base-url for a server of your own")
    if missing:
        raise ModelNotConfigured("the model openai is not configured: " + "; ".join(missing))

    def client(_agent: str) -> OpenAIChatCompletionClient[Any]:
        connection = AsyncOpenAI(
            api_key=key or "none", base_url=server, max_retries=MAX_RETRIES, timeout=REQUEST_SECONDS
        )
        return OpenAIChatCompletionClient(
            model=model, async_client=connection, function_invocation_configuration=loop_limits()
        )

    return Model(kind="openai", name=str(model), client=client)
