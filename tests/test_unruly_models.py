"""Models that do not do as they are told, through the real clients of Foundry and OpenAI, up to the files on disk."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from canned_runtime import reading
from model_server import Answer, Reply, call, model_server, tool_outputs
from test_model_clients import foundry, openai
from wcpod.exceptions import ModelError
from wcpod.podcast.hanzi import to_traditional
from wcpod.podcast.models import Model
from wcpod.podcast.models.rehearsal import SAMPLE_PAGES
from wcpod.podcast.run import Episode, run_episode
from wcpod.podcast.script_check import ScriptRejected, ScriptRules

PAGES = {
    f"https://www.bbc.com/sport/{number}": "Norway won 1-0 last night in front of a full house. " * 4
    for number in range(3)
}
PARAGRAPH = "昨天晚上，挪威队以一比零赢了球，场面很精彩，大家都看得高兴。"
GOOD = "各位听众，早上好。\n\n" + "\n\n".join([PARAGRAPH * 10] * 5) + "\n\n感谢您的收听，再见。"
# Too short, no greeting, no goodbye, western punctuation, markup, an address, simplified where it must be traditional,
# and other things said in the two versions.
BAD = (
    "```simplified\n# 挪威赢了, **精彩**! 见 www.bbc.com\n\n昨天晚上。\n```\n"
    "```traditional\n韩国队输了这场关键的比赛，教练员觉得很遗憾。\n```"
)
EXPECTED = [
    "- The script has 11 Han characters; it must have 1250 to 1400.",
    "- The simplified version holds characters that are not Han text or Han punctuation: ! # * , . b c m o w",
    "- The simplified version holds an internet address.",
    "- The script does not open with a greeting.",
    "- The script does not close with a goodbye.",
    "- The traditional version holds characters of the other one: 关 员 国 场 练 觉 赛 输 这 遗 键 队",
    "- The simplified version has 2 paragraphs, the traditional one 1.",
    "- In the traditional version: No page that was read names 韓國 (South Korea) "
    "(in: 韩国队输了这场关键的比赛，教练员觉得很遗憾。)",
]
READ = """
for number in (1, 2, 3):
    url = f"https://www.bbc.com/sport/football/articles/c0sample{number:04}"
    print(call_tool("fetch_url", url=url)["TITLE"])
"""
AGENTS = ("SearchAgent", "ContentAgent", "GenScriptAgent")


def blocks(script: str) -> str:
    return f"```simplified\n{script}\n```\n```traditional\n{to_traditional(script)}\n```"


def asked(request: dict[str, Any]) -> str:
    """The last thing that the user side said, in either API."""
    texts = []
    for item in request.get("input") or request["messages"]:
        if item.get("role") == "user":
            content = item["content"]
            texts.append(content if isinstance(content, str) else content[-1]["text"])
    return str(texts[-1])


def obedient(final: Answer, code: str = "print(1)") -> Answer:
    """Loads a skill, runs code, and answers; `final` is what GenScriptAgent answers."""

    def answer(request: dict[str, Any]) -> Reply:
        outputs = tool_outputs(request)
        if not outputs:
            return call("load_skill", skill_name="sandbox-guardrails")
        if len(outputs) == 1:
            return call("execute_code", code=code)
        writes = "today's script" in asked(request) or "cannot be taken" in asked(request)
        return final(request) if writes else Reply("material")

    return answer


Write = Callable[..., tuple[Episode, list[dict[str, Any]]]]


@pytest.fixture(params=[foundry, openai], ids=["foundry", "openai"])
def write(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Write]:
    def written(answer: Answer) -> tuple[Episode, list[dict[str, Any]]]:
        with model_server(answer) as (base_url, requests):
            model: Model = request.param(base_url)
            episode = asyncio.run(
                run_episode(
                    day=dt.date(2026, 6, 15),
                    out=tmp_path,
                    model=model,
                    open_runtime=reading(PAGES),
                    rules=ScriptRules(),
                    checkpoints=True,
                )
            )
        return episode, requests

    yield written


def test_a_model_that_breaks_every_rule_and_then_none(write: Write) -> None:
    said: list[str] = []

    def final(request: dict[str, Any]) -> Reply:
        said.append(asked(request))
        return Reply([BAD, "no script at all", blocks(GOOD)][len(said) - 1])

    episode, _ = write(obedient(final))
    assert said[1].splitlines()[1:-1] == EXPECTED
    assert said[2].splitlines()[1:-1] == ["- expected exactly two fenced blocks, found no fenced block."]
    assert episode.record["script"]["drafts"] == 3
    assert episode.folder.simplified.read_text(encoding="utf-8") == GOOD + "\n"
    assert episode.folder.traditional.read_text(encoding="utf-8") == to_traditional(GOOD) + "\n"


def test_a_model_that_never_obeys(write: Write, tmp_path: Path) -> None:
    with pytest.raises(ScriptRejected) as raised:
        write(obedient(lambda _: Reply(BAD)))
    assert str(raised.value).splitlines() == ["the script breaks the rules:", *EXPECTED]
    drafts = tmp_path / "260615.drafts"
    assert {path.name: path.read_text(encoding="utf-8") for path in drafts.iterdir()} == {
        f"draft-{number}.md": BAD + "\n" for number in (1, 2, 3)
    }
    assert not (tmp_path / "260615").exists()


@pytest.mark.parametrize("arguments", ['{"code": "print(1)', "print(1)", "[1]", ""])
def test_broken_arguments_may_be_corrected(write: Write, arguments: str) -> None:
    def careless(request: dict[str, Any]) -> Reply:
        if not tool_outputs(request):
            return Reply(calls=[("execute_code", arguments)])
        return obedient(lambda _: Reply(blocks(GOOD)))(request)

    episode, _ = write(careless)
    assert episode.record["rejected_tool_calls"] == dict.fromkeys(AGENTS, 1)


def test_broken_arguments_for_ever_end_the_run(write: Write, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="SearchAgent ended "):
        write(lambda _: Reply(calls=[("execute_code", '{"code": "print(1)')]))
    assert not (tmp_path / "260615").exists()


@pytest.mark.microvm
def test_the_command_with_a_server_of_ones_own(tmp_path: Path) -> None:
    """`wcpod run --model openai` in the real micro-VM: fails, says how to go on, and goes on."""
    pytest.importorskip("agent_framework_openai", reason="the extra 'openai' is not installed")
    finals = [BAD, BAD, BAD, blocks(GOOD)]

    with model_server(obedient(lambda _: Reply(finals.pop(0)), READ)) as (base_url, requests):
        command = [sys.executable, "-m", "wcpod", "run", "--model", "openai", "--base-url", base_url]
        command += ["--model-name", "fake", "--date", "2026-06-15", "--out", str(tmp_path)]
        command += ["--archive", str(SAMPLE_PAGES)]
        failed = subprocess.run(command, capture_output=True, text=True, check=False)
        assert failed.returncode == 7
        assert failed.stderr.splitlines()[1:-2] == EXPECTED
        assert failed.stderr.splitlines()[-1].endswith("the same command with --resume")
        before = len(requests)
        done = subprocess.run([*command, "--resume"], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert len(requests) == before + 1  # only the answer that was refused is asked for again
    record = json.loads((tmp_path / "260615" / "episode.json").read_text(encoding="utf-8"))
    assert record["model"] == {"kind": "openai", "name": "fake", "rehearsal": False}
    assert record["tool_call_counts"] == {
        agent: {"load_skill": 1, "execute_code": 1, "fetch_url": 3} for agent in AGENTS
    }
    assert record["tokens"]["GenScriptAgent"]["total_token_count"] == 50
