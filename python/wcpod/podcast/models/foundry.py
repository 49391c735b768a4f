"""Microsoft Foundry, through the framework's `FoundryChatClient`, signed in with the Azure CLI."""

from __future__ import annotations

import os
import shutil
from typing import Any

from wcpod.exceptions import ModelNotConfigured
from wcpod.podcast.models import MAX_RETRIES, REQUEST_SECONDS, Model, loop_limits

_ENDPOINT = "FOUNDRY_PROJECT_ENDPOINT"
_MODEL = "FOUNDRY_MODEL"


def open_foundry(*, name: str | None = None, project_client: Any = None) -> Model:
    """The deployment `name` (default: $FOUNDRY_MODEL) of the project at $FOUNDRY_PROJECT_ENDPOINT.

    Args:
        name: Name of the deployment.
        project_client: A ready `AIProjectClient`; then neither the endpoint nor the Azure CLI is needed.

    Raises:
        ModelNotConfigured: if the package, a variable or the Azure CLI is missing.
    """
    try:
        from agent_framework.foundry import FoundryChatClient
        from azure.identity import AzureCliCredential
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

    def client(_agent: str) -> FoundryChatClient[Any]:
        if project_client is None:
            chat = FoundryChatClient(
                project_endpoint=os.environ[_ENDPOINT],
                model=deployment,
                credential=AzureCliCredential(),
                function_invocation_configuration=loop_limits(),
            )
        else:
            chat = FoundryChatClient(
                project_client=project_client, model=deployment, function_invocation_configuration=loop_limits()
            )
        chat.client = chat.client.with_options(max_retries=MAX_RETRIES, timeout=REQUEST_SECONDS)
        return chat

    # store=False: the history stays with us, not on the server.
    return Model(kind="foundry", name=str(deployment), client=client, options={"store": False})
