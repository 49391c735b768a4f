"""A run that fails: what it says, its exit code, what it leaves, and that it can go on."""

from __future__ import annotations

import errno
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agent_framework import FileCheckpointStorage
from click.testing import CliRunner, Result

from canned_runtime import reading
from model_server import Reply, call, model_server
from test_unruly_models import BAD, EXPECTED, GOOD, PAGES, asked, blocks, obedient
from wcpod.cli import cli, exit_codes
from wcpod.podcast.reserve import RESERVED_BYTES, DiskFull, Reserve

pytest.importorskip("agent_framework_openai", reason="the extra 'openai' is not installed")

WAY_ON = "To go on after the last finished step: the same command with --resume"


@pytest.fixture(autouse=True)
def no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wcpod.HyperlightRuntime", lambda record, **_: reading(PAGES)(record))
    monkeypatch.setattr("wcpod.cli.run._boot_early", lambda _: None)


def run(base_url: str, out: Path, *more: str) -> Result:
    arguments = ["run", "--model", "openai", "--base-url", base_url, "--model-name", "fake", "--model-retries", "0"]
    return CliRunner().invoke(cli, [*arguments, "--date", "2026-06-15", "--out", str(out), *more])


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (Reply(status=401), exit_codes.NOT_CONFIGURED),
        (Reply(status=404), exit_codes.NOT_CONFIGURED),
        (Reply(raw=("text/html", b"<html></html>")), exit_codes.NOT_CONFIGURED),
        (Reply(status=429), exit_codes.SERVICE_FAILED),
        (Reply(status=500), exit_codes.SERVICE_FAILED),
        (Reply("cut", ended="length"), exit_codes.NOT_PUBLISHABLE),
        (Reply("withheld", ended="content_filter"), exit_codes.NOT_PUBLISHABLE),
    ],
)
def test_settings_service_and_content_have_codes_of_their_own(tmp_path: Path, reply: Reply, code: int) -> None:
    with model_server(lambda _: reply) as (base_url, _):
        result = run(base_url, tmp_path)
    assert result.exit_code == code
    assert [line.partition(" ")[0] for line in result.stderr.splitlines()] == ["wcpod:", "To"]
    assert result.stderr.splitlines()[-1] == WAY_ON


def test_the_help_tells_the_codes() -> None:
    text = " ".join(CliRunner().invoke(cli, ["run", "--help"]).output.split())
    assert "5 settings: a show, skill, model, key, address or package" in text
    assert "6 the model's service failed; try again later" in text
    assert "7 what the model wrote cannot be published" in text


@pytest.mark.parametrize(("number", "meaning"), [("length", "raise --max-tokens"), ("content_filter", "withheld")])
def test_an_answer_that_ended_early_says_what_that_means(tmp_path: Path, number: str, meaning: str) -> None:
    with model_server(lambda _: Reply("half", ended=number)) as (base_url, _):
        line = run(base_url, tmp_path).stderr.splitlines()[0]
    assert line.startswith(f"wcpod: SearchAgent ended with finish_reason '{number}', not 'stop': ")
    assert meaning in line


@pytest.mark.parametrize("final", [BAD, "no script at all"])
def test_drafts_are_named_kept_and_gone_after_a_success(tmp_path: Path, final: str) -> None:
    finals = [final, final, final, blocks(GOOD)]
    with model_server(obedient(lambda _: Reply(finals.pop(0)))) as (base_url, requests):
        failed = run(base_url, tmp_path)
        assert failed.exit_code == exit_codes.NOT_PUBLISHABLE
        assert failed.stderr.splitlines()[-2:] == [f"Its drafts are in {tmp_path / '260615.drafts'}", WAY_ON]
        assert sorted(path.name for path in (tmp_path / "260615.drafts").iterdir()) == [
            f"draft-{number}.md" for number in (1, 2, 3)
        ]
        before = len(requests)
        assert run(base_url, tmp_path, "--resume").exit_code == 0
        assert len(requests) == before + 1
    assert [path.name for path in tmp_path.iterdir()] == ["260615"]


def test_a_rejected_script_says_every_reason(tmp_path: Path) -> None:
    with model_server(obedient(lambda _: Reply(BAD))) as (base_url, _):
        assert run(base_url, tmp_path).stderr.splitlines()[1:-2] == EXPECTED


def test_a_service_that_failed_in_the_middle_costs_no_finished_agent(tmp_path: Path) -> None:
    broken = [True]

    def answer(request: dict[str, Any]) -> Reply:
        if broken[0] and "Shape the content" in asked(request):
            return Reply(status=503)
        return obedient(lambda _: Reply(blocks(GOOD)))(request)

    with model_server(answer) as (base_url, requests):
        assert run(base_url, tmp_path).exit_code == exit_codes.SERVICE_FAILED
        broken[0] = False
        before = len(requests)
        assert run(base_url, tmp_path, "--resume").exit_code == 0
        assert not any("Gather the news" in asked(request) for request in requests[before:])


def test_a_resumed_run_tells_of_each_step_that_it_begins(tmp_path: Path) -> None:
    finals = [BAD, BAD, BAD, blocks(GOOD)]
    with model_server(obedient(lambda _: Reply(finals.pop(0)))) as (base_url, _):
        run(base_url, tmp_path)
        events = [json.loads(line) for line in run(base_url, tmp_path, "--resume", "--json").stdout.splitlines()]
    started = [event["step"] for event in events if event["event"] == "step_started"]
    assert started == [event["step"] for event in events if event["event"] == "step_ended"]
    assert started == ["GenScriptAgent", "save_scripts"]


def test_a_model_that_is_not_reachable_is_not_asked_twice(tmp_path: Path) -> None:
    result = run("127.0.0.1:9/v1", tmp_path)
    assert result.exit_code == exit_codes.NOT_CONFIGURED
    assert result.stderr == (
        "wcpod: --base-url must be an address such as http://127.0.0.1:9/v1, not '127.0.0.1:9/v1'\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_the_settings_reach_the_model(tmp_path: Path) -> None:
    with model_server(lambda _: Reply(status=503)) as (base_url, requests):
        run(base_url, tmp_path, "--temperature", "0.2", "--max-tokens", "900", "--model-retries", "2")
    assert len(requests) == 3
    assert requests[0]["temperature"] == 0.2
    assert 900 in (requests[0].get("max_tokens"), requests[0].get("max_completion_tokens"))


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_without_room_nothing_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise FULL

    monkeypatch.setattr("os.posix_fallocate", full)
    with model_server(lambda _: Reply("never")) as (base_url, requests):
        result = run(base_url, tmp_path)
    assert requests == []
    assert result.exit_code == exit_codes.FAILED
    assert result.stderr == (
        f"wcpod: no room for the work of a run in {tmp_path / '260615.checkpoints'} (No space left on device): "
        "free 2 MiB there; nothing was asked\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["260615.failed.json"]  # why, for `wcpod days`


def full_after(saves: int, *, also_then: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints find the disk full after so many, and so many times."""
    save, seen = FileCheckpointStorage.save, [0]

    async def sometimes(storage: FileCheckpointStorage, checkpoint: Any) -> str:
        seen[0] += 1
        if saves < seen[0] <= saves + also_then:
            raise FULL
        return await save(storage, checkpoint)

    monkeypatch.setattr(FileCheckpointStorage, "save", sometimes)


def test_the_reserve_keeps_an_answer_when_the_disk_fills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full_after(3, also_then=1, monkeypatch=monkeypatch)
    with model_server(obedient(lambda _: Reply(blocks(GOOD)))) as (base_url, _):
        assert run(base_url, tmp_path).exit_code == 0


def test_no_further_agent_is_asked_when_a_step_cannot_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with model_server(obedient(lambda _: Reply(blocks(GOOD)))) as (base_url, requests):
        with monkeypatch.context() as patch:
            full_after(2, also_then=99, monkeypatch=patch)
            result = run(base_url, tmp_path)
        assert result.exit_code == exit_codes.FAILED
        assert result.stderr.splitlines() == [
            f"wcpod: what was done could not be kept in {tmp_path / '260615.checkpoints'} (No space left on device): "
            "make room there; no further agent was asked",
            WAY_ON,
        ]
        assert not any("Shape the content" in asked(request) for request in requests)
        assert run(base_url, tmp_path, "--resume").exit_code == 0


def limited(size: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@pytest.mark.parametrize("size", [4096, 20_480, 102_400])
def test_a_limit_of_the_system_is_found_before_anything_is_asked(tmp_path: Path, size: int) -> None:
    program = (
        "import sys\nfrom pathlib import Path\nfrom wcpod.podcast.reserve import Reserve\n"
        f"Reserve(Path({str(tmp_path)!r})).take()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, preexec_fn=limited(size)
    )
    assert done.stderr.splitlines()[-1] == (
        f"wcpod.podcast.reserve.DiskFull: no room for the work of a run in {tmp_path} (File too large): "
        "free 2 MiB there; nothing was asked"
    )
    assert list(tmp_path.iterdir()) == []


def test_the_reserve_is_real_room(tmp_path: Path) -> None:
    reserve = Reserve(tmp_path)
    reserve.take()
    [file] = tmp_path.iterdir()
    assert file.stat().st_blocks * 512 >= RESERVED_BYTES
    assert reserve.give_back() is True
    assert reserve.give_back() is False
    assert list(tmp_path.iterdir()) == []


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("kept")
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    (folder / "reserve.tmp").symlink_to(elsewhere)
    with pytest.raises(DiskFull):
        Reserve(folder).take()
    assert elsewhere.read_text() == "kept"


@pytest.mark.microvm
def test_the_framework_adds_no_line_of_its_own(tmp_path: Path) -> None:
    with model_server(lambda _: call("fetch_url", url="https://www.bbc.com/")) as (base_url, _):
        command = [sys.executable, "-m", "wcpod", "run", "--model", "openai", "--base-url", base_url]
        command += ["--model-name", "fake", "--out", str(tmp_path), "--date", "2026-06-15"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == exit_codes.FAILED
    assert done.stderr.splitlines() == ["wcpod: the model called a tool that it may not use: fetch_url", WAY_ON]
