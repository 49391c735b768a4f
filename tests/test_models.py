"""Opening a model: what is missing is said, and nothing is imported that is not needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from wcpod.exceptions import ModelNotConfigured
from wcpod.podcast.models import open_model

VARIABLES = ("FOUNDRY_PROJECT_ENDPOINT", "FOUNDRY_MODEL", "OPENAI_API_KEY", "OPENAI_MODEL", "OPENAI_BASE_URL")


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))  # no program is found, `az` among them


def why_not(kind: str, base_url: str | None = None) -> str:
    with pytest.raises(ModelNotConfigured) as raised:
        open_model(kind, base_url=base_url)
    return str(raised.value)


def test_the_rehearsal_needs_nothing() -> None:
    model = open_model("rehearsal")
    assert (model.kind, model.name, model.rehearsal) == ("rehearsal", "rehearsal", True)


def test_a_kind_that_does_not_exist() -> None:
    assert why_not("other") == "there is no model 'other'; choose one of rehearsal, foundry, openai"


def test_a_base_url_goes_with_openai() -> None:
    assert why_not("foundry", base_url="http://x") == "a base URL goes with --model openai, not with foundry"


def test_foundry_names_everything_that_is_missing() -> None:
    pytest.importorskip("agent_framework_foundry", reason="the extra 'foundry' is not installed")
    assert why_not("foundry") == (
        "the model foundry is not configured: set FOUNDRY_MODEL to the name of a deployment; "
        "set FOUNDRY_PROJECT_ENDPOINT to the address of a Foundry project; "
        "install the Azure CLI (az) and run: az login"
    )


def test_openai_names_everything_that_is_missing() -> None:
    pytest.importorskip("agent_framework_openai", reason="the extra 'openai' is not installed")
    assert why_not("openai") == (
        "the model openai is not configured: set OPENAI_MODEL, or pass --model-name; "
        "set OPENAI_API_KEY, or pass --base-url for a server of your own"
    )


@pytest.mark.parametrize("kind", ["foundry", "openai"])
def test_a_missing_package(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setitem(sys.modules, f"agent_framework.{kind}", None)
    assert why_not(kind) == f"the model {kind} needs more packages: pip install 'wcpod[podcast,{kind}]'"


def test_a_server_of_ones_own_needs_no_key() -> None:
    pytest.importorskip("agent_framework_openai", reason="the extra 'openai' is not installed")
    model = open_model("openai", name="local", base_url="http://127.0.0.1:1/v1")
    assert (model.kind, model.name, model.rehearsal) == ("openai", "local", False)
    client = model.client("SearchAgent").client
    assert (client.max_retries, client.timeout.read, client.timeout.connect) == (4, 240.0, 15.0)


def test_the_rehearsal_imports_no_client_of_a_real_model() -> None:
    program = (
        "import sys\nfrom wcpod.podcast.models import open_model\nopen_model('rehearsal')\n"
        "print([name for name in ('openai', 'azure.identity', 'agent_framework_openai') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
