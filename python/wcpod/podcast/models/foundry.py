"""Microsoft Foundry, through the framework's `FoundryChatClient`, signed in with the Azure CLI."""

from __future__ import annotations

import os
import shutil
from typing import Any

from wcpod.exceptions import ModelNotConfigured
from wcpod.podcast.models import Model, loop_limits
from wcpod.podcast.models.service import CONNECT_SECONDS, Service, checked_address, without_password
from wcpod.podcast.models.settings import DEFAULT_SETTINGS, ModelSettings

_ENDPOINT = "FOUNDRY_PROJECT_ENDPOINT"
_MODEL = "FOUNDRY_MODEL"


def open_foundry(
    *, name: str | None = None, project_client: Any = None, settings: ModelSettings = DEFAULT_SETTINGS
) -> Model:
    """The deployment `name` (default: $FOUNDRY_MODEL) of the project at $FOUNDRY_PROJECT_ENDPOINT.

    Args:
        name: Name of the deployment.
        settings: How it is asked.
        project_client: A ready `AIProjectClient`; then neither the endpoint nor the Azure CLI is needed.

    Raises:
        ModelNotConfigured: if the package, a variable or the Azure CLI is missing, or the endpoint is no address.
    """
    try:
        from agent_framework.foundry import FoundryChatClient
        from azure.identity import AzureCliCredential
        from openai import Timeout
    except ImportError as error:
        raise ModelNotConfigured(
            "the model foundry needs more packages: pip install 'wcpod[podcast,foundry]'"
        ) from error

    deployment = name or os.environ.get(_MODEL)
    missing = [] if deployment else [f"set {_MODEL} to the name of a deployment"]
    if project_client is None:
        if not os.environ.get(_ENDPOINT):
            missing.append(f"set {_ENDPOINT} to the address of a Foundry project")
        if shutil.which("az") is None:
            missing.append("install the Azure CLI (az) and run: az login")
    if missing:
        raise ModelNotConfigured("the model foundry is not configured: " + "; ".join(missing))

    endpoint = os.environ.get(_ENDPOINT, "")
    if project_client is None:
        checked_address(endpoint, _ENDPOINT)
    service = Service(
        model=str(deployment),
        address=without_password(endpoint),
        key="run: az login, with an account that may use the project",
        place=_ENDPOINT,
        settings=settings,
    )

    def client(_agent: str) -> FoundryChatClient[Any]:
        project: dict[str, Any] = {"project_client": project_client}
        if project_client is None:
            project = {"project_endpoint": endpoint, "credential": AzureCliCredential()}
        chat: FoundryChatClient[Any] = FoundryChatClient(
            model=deployment,
            middleware=[service.middleware()],
            function_invocation_configuration=loop_limits(),
            **project,
        )
        waits = Timeout(settings.timeout, connect=min(CONNECT_SECONDS, settings.timeout))
        chat.client = chat.client.with_options(max_retries=settings.retries, timeout=waits)
        service.address = without_password(str(chat.client.base_url))
        return chat

    # store=False: the history stays with us, not on the server.
    return Model(
        kind="foundry", name=str(deployment), client=client, options={"store": False, **settings.chat_options()}
    )
