"""The real clients of Foundry and of an OpenAI-compatible server, against a fake server on a loopback port."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from canned_runtime import CannedRuntime, outcome
from model_server import Answer, Reply, call, model_server, tool_names, tool_outputs
from scripted_model import ANY_LENGTH, SCRIPTS
from wcpod.exceptions import ModelError, ModelUnavailable, ToolSurfaceError
from wcpod.podcast.models import Model
from wcpod.podcast.run import Episode, run_episode

TRACEBACK = "Traceback (most recent call last):\n  ...\nKeyError: 'body'\n"


class Project:
    """What `FoundryChatClient` needs of an `AIProjectClient`."""

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url

    def get_openai_client(self, **_options: Any) -> Any:
        from openai import AsyncOpenAI

        return AsyncOpenAI(base_url=self._base_url, api_key="none")


def foundry(base_url: str) -> Model:
    pytest.importorskip("agent_framework_foundry", reason="the extra 'foundry' is not installed")
    from wcpod.podcast.models.foundry import open_foundry

    return open_foundry(name="fake", project_client=Project(base_url))


def openai(base_url: str) -> Model:
    pytest.importorskip("agent_framework_openai", reason="the extra 'openai' is not installed")
    from wcpod.podcast.models.openai import open_openai

    return open_openai(name="fake", base_url=base_url)


@pytest.fixture(params=[foundry, openai], ids=["foundry", "openai"])
def write(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., tuple[Episode, list[dict[str, Any]]]]:
    """Write an episode with a model that answers so; gives the episode and the requests."""

    def written(answer: Answer, runtime: Any = None) -> tuple[Episode, list[dict[str, Any]]]:
        opened = runtime or CannedRuntime()
        with model_server(answer) as (base_url, requests):
            model = request.param(base_url)
            episode = asyncio.run(
                run_episode(
                    day=dt.date(2026, 6, 15),
                    out=tmp_path / "out",
                    model=model,
                    open_runtime=lambda _: opened,
                    rules=ANY_LENGTH,
                )
            )
        return episode, requests

    return written


Write = Callable[..., tuple[Episode, list[dict[str, Any]]]]


def ordinary(request: dict[str, Any]) -> Reply:
    done = len(tool_outputs(request))
    if done == 0:
        return call("load_skill", skill_name="sandbox-guardrails")
    return call("execute_code", code="print(1)") if done == 1 else Reply(SCRIPTS)


def test_an_episode(write: Write) -> None:
    episode, requests = write(ordinary)
    assert len(requests) == 9
    assert {tuple(tool_names(request)) for request in requests} == {("execute_code", "load_skill")}
    assert episode.folder.simplified.read_text(encoding="utf-8") == "各位听众，早上好。再见。\n"
    assert episode.record["model"]["rehearsal"] is False
    assert {agent: tokens["total_token_count"] for agent, tokens in episode.record["tokens"].items()} == {
        "SearchAgent": 30,
        "ContentAgent": 30,
        "GenScriptAgent": 30,
    }


def test_a_traceback_of_the_guest_reaches_the_model_as_text(write: Write) -> None:
    runtime = CannedRuntime(lambda _: outcome("before\n", TRACEBACK, kind="error"))
    _, requests = write(ordinary, runtime)
    assert tool_outputs(requests[2])[1] == (
        f"exit code 1 (error)\n<stdout>\nbefore\n</stdout>\n<stderr>\n{TRACEBACK}</stderr>"
    )


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_asked_again(write: Write, status: int) -> None:
    asked: list[int] = []

    def busy(_request: dict[str, Any]) -> Reply:
        asked.append(1)
        return Reply(status=status) if len(asked) <= 3 else Reply(SCRIPTS)

    _, requests = write(busy)
    assert len(requests) == 6


def test_a_server_that_stays_busy_is_given_up(write: Write, tmp_path: Path) -> None:
    asked: list[int] = []

    def busy(_request: dict[str, Any]) -> Reply:
        asked.append(1)
        return Reply(status=503)

    with pytest.raises(ModelUnavailable, match=r" failed \(503 Service Unavailable: told to fail\): try again later$"):
        write(busy)
    assert len(asked) == 5
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("ended", ["length", "content_filter"])
def test_a_truncated_or_filtered_answer_is_no_episode(write: Write, tmp_path: Path, ended: str) -> None:
    with pytest.raises(ModelError):
        write(lambda _: Reply(SCRIPTS, ended=ended))
    assert list((tmp_path / "out").iterdir()) == []


def test_broken_arguments_run_nothing_and_may_be_corrected(write: Write) -> None:
    runtime = CannedRuntime()

    def careless(request: dict[str, Any]) -> Reply:
        return ordinary(request) if tool_outputs(request) else Reply(calls=[("execute_code", '{"code": "print(1)')])

    episode, _ = write(careless, runtime)
    assert episode.record["rejected_tool_calls"] == {"SearchAgent": 1, "ContentAgent": 1, "GenScriptAgent": 1}
    assert episode.record["tool_call_counts"] == {
        agent: {"execute_code": 1} for agent in ("SearchAgent", "ContentAgent", "GenScriptAgent")
    }
    assert len(runtime.codes) == 3


def test_a_tool_name_that_the_model_may_not_use(write: Write) -> None:
    with pytest.raises(ToolSurfaceError, match="the model called a tool that it may not use: fetch_url"):
        write(lambda _: call("fetch_url", url="https://www.bbc.com/"))
