"""Any server that speaks OpenAI's Chat Completions, a local one as well."""

from __future__ import annotations

import os
from typing import Any

from wcpod.exceptions import ModelNotConfigured
from wcpod.podcast.models import Model, loop_limits
from wcpod.podcast.models.service import CONNECT_SECONDS, Service, checked_address, without_password
from wcpod.podcast.models.settings import DEFAULT_SETTINGS, ModelSettings

_KEY = "OPENAI_API_KEY"
_MODEL = "OPENAI_MODEL"
_BASE_URL = "OPENAI_BASE_URL"
_OPENAI = "https://api.openai.com/v1"


def open_openai(
    *, name: str | None = None, base_url: str | None = None, settings: ModelSettings = DEFAULT_SETTINGS
) -> Model:
    """The model `name` (default: $OPENAI_MODEL) of the server at `base_url` (default: $OPENAI_BASE_URL, or OpenAI's).

    A server of one's own needs no $OPENAI_API_KEY.

    Raises:
        ModelNotConfigured: if the package or a variable is missing, or the address is none.
    """
    try:
        from agent_framework.openai import OpenAIChatCompletionClient
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient, Timeout
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

    if server:
        checked_address(server, "--base-url" if base_url else _BASE_URL)
    service = Service(
        model=str(model),
        address=without_password(server or _OPENAI),
        key=f"set {_KEY} to a key that it takes",
        place="--base-url, which usually ends with /v1",
        settings=settings,
    )

    def client(_agent: str) -> OpenAIChatCompletionClient[Any]:
        waits = Timeout(settings.timeout, connect=min(CONNECT_SECONDS, settings.timeout))
        http = DefaultAsyncHttpxClient(timeout=waits, event_hooks={"response": [service.note]})
        connection = AsyncOpenAI(
            api_key=key or "none", base_url=server, max_retries=settings.retries, timeout=waits, http_client=http
        )
        return OpenAIChatCompletionClient(
            model=model,
            async_client=connection,
            middleware=[service.middleware()],
            function_invocation_configuration=loop_limits(),
        )

    return Model(kind="openai", name=str(model), client=client, options=settings.chat_options())
