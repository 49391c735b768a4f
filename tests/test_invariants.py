"""The four invariants that the product's security argument rests on. The numbers are those of the design."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime as dt
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import model_server
from canned_runtime import CannedRuntime, canned, host_call
from scripted_model import ANY_LENGTH, PERSONAS, SCRIPTS, ScriptedClient, call, scripted_model
from wcpod import FetchPolicy
from wcpod.exceptions import PipelineError
from wcpod.podcast.models import Model, open_model
from wcpod.podcast.models.rehearsal import SAMPLE_PAGES
from wcpod.podcast.run import Episode, run_episode

DAY = dt.date(2026, 6, 15)


def episode_of(model: Model, out: Path, open_runtime: Callable[[Path], Any], **options: Any) -> Episode:
    options = {"rules": ANY_LENGTH, **options}
    return asyncio.run(run_episode(day=DAY, out=out, model=model, open_runtime=open_runtime, **options))


# 1. The model never sees the network: its tools are execute_code and load_skill, checked on the wire.


class Project:
    """What `FoundryChatClient` needs of an `AIProjectClient`."""

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url

    def get_openai_client(self, **_options: Any) -> Any:
        from openai import AsyncOpenAI

        return AsyncOpenAI(base_url=self._base_url, api_key="none")


def test_1_the_tools_on_the_wire(tmp_path: Path) -> None:
    """The JSON that the real `FoundryChatClient` sends, with every default of the harness agent in play."""
    pytest.importorskip("agent_framework_foundry", reason="the extra 'foundry' is not installed")
    from wcpod.podcast.models.foundry import open_foundry

    def answer(request: dict[str, Any]) -> model_server.Reply:
        done = len(model_server.tool_outputs(request))
        if done == 0:
            return model_server.call("load_skill", skill_name="sandbox-guardrails")
        return model_server.call("execute_code", code="print(1)") if done == 1 else model_server.Reply(SCRIPTS)

    runtime = CannedRuntime()
    with model_server.model_server(answer) as (base_url, requests):
        model = open_foundry(name="fake", project_client=Project(base_url))
        episode = episode_of(model, tmp_path, lambda _: runtime)

    assert len(requests) == 9
    for request in requests:
        assert sorted((tool["type"], tool["name"]) for tool in request["tools"]) == [
            ("function", "execute_code"),
            ("function", "load_skill"),
        ]
        assert request["store"] is False
    assert [agent for agent, _ in runtime.codes] == list(PERSONAS)
    assert episode.record["model"] == {"kind": "foundry", "name": "fake", "rehearsal": False}


def test_1_the_agents_carry_a_stub_and_learn_the_rest_from_skills(tmp_path: Path) -> None:
    clients: dict[str, ScriptedClient] = {}

    def client(agent: str) -> ScriptedClient:
        clients[agent] = ScriptedClient([[call("load_skill", f"{agent}-1", skill_name=PERSONAS[agent])], SCRIPTS])
        return clients[agent]

    model = Model(kind="rehearsal", name="scripted", client=client, rehearsal=True)
    episode_of(model, tmp_path, canned)
    for agent, persona in PERSONAS.items():
        assert clients[agent].results()[0].startswith(f"---\nname: {persona}\n")
        assert clients[agent].tools == [["load_skill", "execute_code"]] * 2


# 2. One runtime per run; a clean snapshot is restored before every execute_code.


def test_2_one_runtime_serves_the_three_agents(tmp_path: Path) -> None:
    opened: list[CannedRuntime] = []

    def open_runtime(_: Path) -> CannedRuntime:
        opened.append(CannedRuntime())
        return opened[-1]

    episode_of(scripted_model(), tmp_path, open_runtime)
    assert len(opened) == 1
    assert [agent for agent, _ in opened[0].codes] == list(PERSONAS)


@pytest.mark.microvm
def test_2_nothing_is_left_of_an_earlier_execution(runtime: Callable[..., Any]) -> None:
    shared = runtime()
    left = "import builtins, sys\nkept = builtins.kept = sys.kept = 1\nopen('/tmp/kept', 'w').write('1')"
    look = (
        "import builtins, os, sys\n"
        "print('kept' in globals(), hasattr(builtins, 'kept'), hasattr(sys, 'kept'), os.path.exists('/tmp/kept'))"
    )
    shared.execute(left, agent="SearchAgent")
    assert shared.execute(look, agent="ContentAgent").stdout == "False False False False\n"


# 3. Two counters, and both agree with what really happened.


def test_3_the_counters_of_both_paths(tmp_path: Path) -> None:
    calls = (host_call(), host_call("blocked", reason="not on the allow-list"), host_call("timeout"))
    runtime = CannedRuntime(calls=calls)
    episode = episode_of(scripted_model(), tmp_path, lambda _: runtime)
    assert episode.record["tool_call_counts"] == {
        agent: {"load_skill": 1, "execute_code": 1, "fetch_url": 3} for agent in PERSONAS
    }
    assert [fetch["status"] for fetch in episode.record["fetches"]] == ["ok", "blocked", "timeout"] * 3
    written = json.loads(episode.folder.episode.read_text(encoding="utf-8"))
    assert len(written.pop("files")) == 4
    assert written == episode.record


class Forgetful(CannedRuntime):
    """Serves host calls, and tells no callback."""

    def execute(self, code: str, **options: Any) -> Any:
        return super().execute(code, **{**options, "on_call": None})


class Secretive(CannedRuntime):
    """Counts and tells host calls, but its results do not have them."""

    def execute(self, code: str, **options: Any) -> Any:
        return dataclasses.replace(super().execute(code, **options), host_calls=())


@pytest.mark.parametrize("kind", [Forgetful, Secretive])
def test_3_counters_that_disagree_end_the_run(tmp_path: Path, kind: type[CannedRuntime]) -> None:
    with pytest.raises(PipelineError, match="the counters disagree"):
        episode_of(scripted_model(), tmp_path, lambda _: kind(calls=(host_call(),)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.microvm
def test_3_the_counters_of_a_real_run(tmp_path: Path, runtime: Callable[..., Any]) -> None:
    made = runtime(policy=FetchPolicy.bbc(), archive=SAMPLE_PAGES, record=tmp_path / "pages")
    episode = episode_of(
        open_model("rehearsal"), tmp_path / "out", lambda _: made, pages=tmp_path / "pages", rules=None
    )
    counts = episode.record["tool_call_counts"]
    assert {agent: names.get("fetch_url", 0) for agent, names in counts.items()} == {
        "SearchAgent": 23,
        "ContentAgent": 0,
        "GenScriptAgent": 0,
    }
    assert made.host_call_counts == {"SearchAgent": {"fetch_url": 23}}
    statuses = [fetch["status"] for fetch in episode.record["fetches"]]
    assert {status: statuses.count(status) for status in set(statuses)} == {"ok": 21, "error": 1, "blocked": 1}
    executions = [execution["agent"] for execution in episode.record["seconds"]["executions"]]
    assert {agent: executions.count(agent) for agent in counts} == {
        agent: names["execute_code"] for agent, names in counts.items()
    }


# 4. save_scripts is deterministic: no model between the parsed text and the bytes on disk.


def test_4_the_bytes_on_disk_are_the_parsed_blocks(tmp_path: Path) -> None:
    # OpenCC would write 裡面 and 電視臺: the model's own characters must stay.
    simplified = "各位听众，早上好。里面有电视台。\n\n再见。"
    traditional = "各位聽眾，早上好。裏面有電視台。\n\n再見。"
    final = f"好的：\n\n```traditional\n{traditional}\n```\n\n```simplified\n{simplified}\n```\n完。"
    saved = []
    for out in (tmp_path / "one", tmp_path / "two"):
        model = scripted_model(lambda _: [final])
        folder = episode_of(model, out, canned).folder
        saved.append((folder.simplified.read_bytes(), folder.traditional.read_bytes()))
    assert saved == [(f"{simplified}\n".encode(), f"{traditional}\n".encode())] * 2
    record = json.loads(folder.episode.read_text(encoding="utf-8"))
    assert record["script"]["simplified_sha256"] == hashlib.sha256(saved[0][0]).hexdigest()


def test_4_no_model_is_asked_after_the_last_agent(tmp_path: Path) -> None:
    clients: list[ScriptedClient] = []

    def client(_agent: str) -> ScriptedClient:
        clients.append(ScriptedClient([SCRIPTS]))
        return clients[-1]

    model = Model(kind="rehearsal", name="scripted", client=client, rehearsal=True)
    episode_of(model, tmp_path, canned)
    assert [len(client.requests) for client in clients] == [1, 1, 1]
