"""The pipeline in DevUI: one workflow for many runs, each on its own."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from agent_framework import Workflow, WorkflowRunResult
from click.testing import CliRunner

from canned_runtime import CannedRuntime, host_call
from scripted_model import ANY_LENGTH, ScriptedClient, ordinary_turns
from wcpod.cli import cli
from wcpod.exceptions import HypervisorUnavailable
from wcpod.podcast.day_folder import DayExists
from wcpod.podcast.devui import build_devui_workflow
from wcpod.podcast.models import Model
from wcpod.podcast.workflow import output_of


def workflow(out: Path, **options: Any) -> Workflow:
    """A workflow whose agents answer every run alike, as long as they do not remember an earlier one."""

    class Forgetful(ScriptedClient):
        def __init__(self, agent: str) -> None:
            super().__init__([])
            self.agent = agent

        def _inner_get_response(self, *, messages: Any, **more: Any) -> Any:
            answered = sum(message.role == "assistant" for message in messages)
            self.turns = ordinary_turns(self.agent)[answered:]
            return super()._inner_get_response(messages=messages, **more)

    return build_devui_workflow(
        model=Model(kind="openai", name="real", client=Forgetful),
        runtime=CannedRuntime(calls=(host_call(),)),  # type: ignore[arg-type]
        out=out,
        pages=out / "pages",
        rules=ANY_LENGTH,
        **options,
    )


def run(shown: Workflow, message: str) -> WorkflowRunResult:
    """One run of the workflow to its end."""

    async def to_its_end() -> WorkflowRunResult:
        return await shown.run(message)

    return asyncio.run(to_its_end())


def test_each_run_is_on_its_own(tmp_path: Path) -> None:
    shown = workflow(tmp_path)
    counts = []
    for day in ("2026-06-15", " 2026-06-16\n"):
        counts.append(output_of(run(shown, day))["tool_call_counts"])
    assert counts[0] == counts[1]
    assert counts[0]["SearchAgent"] == {"load_skill": 1, "execute_code": 1, "fetch_url": 1}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["260615", "260616"]


def test_a_day_that_exists_is_kept_unless_told(tmp_path: Path) -> None:
    run(workflow(tmp_path), "2026-06-15")
    with pytest.raises(DayExists):
        run(workflow(tmp_path), "2026-06-15")
    run(workflow(tmp_path, force=True), "2026-06-15")


def test_a_day_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Invalid isoformat string: 'tomorrow'"):
        run(workflow(tmp_path), "tomorrow")
    assert list(tmp_path.iterdir()) == []


def test_help_teaches_by_example() -> None:
    assert "Example:" in CliRunner().invoke(cli, ["devui", "--help"]).output


def test_the_contact_reaches_the_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("agent_framework_devui", reason="the extra 'devui' is not installed")
    runtime = MagicMock(side_effect=HypervisorUnavailable("/dev/kvm does not exist"))
    monkeypatch.setattr("wcpod.HyperlightRuntime", runtime)
    CliRunner().invoke(cli, ["devui", "--contact", "ops@example.org"], prog_name="wcpod")
    assert runtime.call_args.kwargs["contact"] == "ops@example.org"


def ask(address: str, body: dict[str, Any] | None = None, token: str = "") -> str:
    request = urllib.request.Request(
        address,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json", "Authorization": f"Bearer {token}"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        text: str = answer.read().decode()
    return text


def wait_for(address: str) -> None:
    for _ in range(300):
        try:
            ask(f"{address}/health")
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"nobody answers at {address}")


@pytest.mark.microvm
def test_the_command(tmp_path: Path) -> None:
    pytest.importorskip("agent_framework_devui", reason="the extra 'devui' is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "wcpod", "devui", "--port", str(port)]
    log = tmp_path / "log"
    with log.open("w") as stream, subprocess.Popen(command, cwd=tmp_path, stdout=stream, stderr=stream) as server:
        try:
            address = f"http://127.0.0.1:{port}"
            wait_for(address)
            token = log.read_text().splitlines()[0].removeprefix(f"{address}  token: ")
            with pytest.raises(urllib.error.HTTPError, match="401"):
                ask(f"{address}/v1/entities", token="guess")
            (entity,) = json.loads(ask(f"{address}/v1/entities", token=token))["entities"]
            assert (entity["name"], entity["executors"][0]) == ("wcpod", "prepare")
            run = {"metadata": {"entity_id": entity["id"]}, "input": "2026-06-15", "stream": True}
            events = ask(f"{address}/v1/responses", run, token=token)
        finally:
            server.terminate()
    assert '"type":"response.completed"' in events
    assert "execute_tool fetch_url" in events
    assert sorted(path.name for path in (tmp_path / "outputs" / "260615").iterdir()) == [
        "260615.notes.md",
        "260615.segments.json",
        "260615.simple.zh.txt",
        "260615.tranditional.zh.txt",
        "episode.json",
    ]
