"""A run that was cut off goes on after its last finished step, and comes to the same files."""

from __future__ import annotations

import asyncio
import json
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from canned_runtime import CannedRuntime, canned, outcome
from killed_run import DAY, write
from scripted_model import ANY_LENGTH, SCRIPTS, ScriptedClient, call, scripted_model
from wcpod.exceptions import ModelError, PipelineError, SandboxError
from wcpod.podcast.day_folder import DayExists, DayFolder
from wcpod.podcast.models import Model
from wcpod.podcast.progress import Event, RunResumed
from wcpod.podcast.run import Episode, run_episode
from wcpod.podcast.script_check import ScriptRejected, ScriptRules

STEPS = ["prepare", "SearchAgent", "adapt_content", "ContentAgent", "adapt_script", "GenScriptAgent", "save_scripts"]
AGENTS = ["SearchAgent", "ContentAgent", "GenScriptAgent"]
POINTS = [
    *(f"started {step}" for step in STEPS),
    "ended save_scripts",
    *(f"asked {agent} 2" for agent in AGENTS),
    "asked GenScriptAgent 3",  # after its first draft was refused
    *(f"moving {number}" for number in (0, 2)),
    "published",
]
ASKED_ONCE = [
    *(f"SearchAgent {turn}" for turn in range(3)),
    *(f"ContentAgent {turn}" for turn in range(3)),
    *(f"GenScriptAgent {turn}" for turn in range(4)),
]


def kill_at(point: str, out: Path, log: Path) -> None:
    program = Path(__file__).with_name("killed_run.py")
    done = subprocess.run([sys.executable, str(program), str(out), point, str(log)], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()


def contents(folder: DayFolder) -> dict[str, Any]:
    """The day's files; of `episode.json` what does not depend on the time it took, or on having been resumed."""
    found: dict[str, Any] = {path.name: path.read_bytes() for path in folder.path.iterdir()}
    record = json.loads(found["episode.json"])
    del record["run"], record["resumed"], record["seconds"]
    for timed in (*record["executions"], *record["fetches"]):
        del timed["started"]
    return {**found, "episode.json": record}


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("unbroken")
    episode = write(folder / "out", folder / "log")
    assert (folder / "log").read_text().splitlines() == ASKED_ONCE
    assert [path.name for path in (folder / "out").iterdir()] == ["260615"]
    return contents(episode.folder)


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_run_goes_on(tmp_path: Path, unbroken: dict[str, Any], point: str) -> None:
    out, log = tmp_path / "out", tmp_path / "log"
    kill_at(point, out, log)
    asked_before = log.read_text().splitlines() if log.exists() else []
    episode = write(out, log, resume=True)
    assert contents(episode.folder) == unbroken
    assert [path.name for path in out.iterdir()] == ["260615"]

    asked = log.read_text().splitlines()
    again = [request for request in asked[len(asked_before) :] if request in asked_before]
    # Only what an agent was asked in the step that was cut off can be asked again.
    expected = {
        "asked GenScriptAgent 3": ["GenScriptAgent 3"],
        **{f"asked {agent} 2": [f"{agent} {turn}" for turn in range(3)] for agent in AGENTS},
    }
    assert again == expected.get(point, [])
    assert sorted(set(asked)) == sorted(ASKED_ONCE)


def test_time_and_counters_go_on(tmp_path: Path) -> None:
    kill_at("asked GenScriptAgent 2", tmp_path / "out", tmp_path / "log")
    events: list[Event] = []
    record = write(tmp_path / "out", tmp_path / "log", resume=True, events=events).record
    assert record["resumed"] == 1
    assert next(event for event in events if isinstance(event, RunResumed)).after == "adapt_script"
    assert record["tool_call_counts"] == {
        agent: {"load_skill": 1, "execute_code": 1, "fetch_url": 2} for agent in AGENTS
    }
    assert [run["code"] for run in record["executions"]] == [
        "print('SearchAgent')",
        "print('ContentAgent')",
        "print('GenScriptAgent')",
    ]
    starts = [span["started"] for span in record["seconds"]["timeline"]]
    assert starts == sorted(starts)
    assert record["seconds"]["total"] >= sum(record["seconds"]["steps"].values()) - 0.01


@pytest.mark.parametrize("steps_lost", [0, 1])
def test_a_run_that_was_killed_after_saving_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps_lost: int
) -> None:
    turns = {"SearchAgent": ["found"], "ContentAgent": ["shaped"], "GenScriptAgent": [SCRIPTS]}
    with monkeypatch.context() as patch:
        patch.setattr("wcpod.podcast.run.Checkpoints.clear", lambda _: None)
        episode = run(tmp_path, turns)
    checkpoints = episode.folder.checkpoints
    found = sorted(checkpoints.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    assert len(found) == 1 + len(STEPS)
    for path in found[len(found) - steps_lost :]:
        path.unlink()
    assert run(tmp_path, {}, resume=True).record == episode.record
    assert not checkpoints.exists()


def test_an_older_episode_does_not_end_a_run_that_replaces_it(tmp_path: Path) -> None:
    turns = {"SearchAgent": ["found"], "ContentAgent": ["shaped"], "GenScriptAgent": [SCRIPTS]}
    run(tmp_path, turns)
    with pytest.raises(ModelError):
        run(tmp_path, turns, GenScriptAgent={"finish_reason": "length"}, force=True)
    with pytest.raises(DayExists):
        run(tmp_path, {agent: [] for agent in turns}, resume=True)
    rest = {**turns, "SearchAgent": [], "ContentAgent": []}
    assert run(tmp_path, rest, resume=True, force=True).record["resumed"] == 1


def test_without_resume_a_run_starts_from_the_beginning(tmp_path: Path) -> None:
    kill_at("started ContentAgent", tmp_path / "out", tmp_path / "log")
    (tmp_path / "log").unlink()
    write(tmp_path / "out", tmp_path / "log")
    assert (tmp_path / "log").read_text().splitlines() == ASKED_ONCE


def test_resume_with_nothing_to_resume_starts_from_the_beginning(tmp_path: Path) -> None:
    write(tmp_path / "out", tmp_path / "log", resume=True)
    assert (tmp_path / "log").read_text().splitlines() == ASKED_ONCE


def test_the_checkpoints_are_for_their_owner_alone(tmp_path: Path) -> None:
    kill_at("started ContentAgent", tmp_path / "out", tmp_path / "log")
    folder = DayFolder(tmp_path / "out", DAY).checkpoints
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_checkpoints_that_others_could_write_are_not_read(tmp_path: Path) -> None:
    kill_at("started ContentAgent", tmp_path / "out", tmp_path / "log")
    folder = DayFolder(tmp_path / "out", DAY).checkpoints
    folder.chmod(0o770)
    with pytest.raises(PipelineError) as raised:
        write(tmp_path / "out", tmp_path / "log", resume=True)
    assert str(raised.value) == (
        f"others than the user of this process can write into {folder}, so its checkpoints are not to be trusted; "
        "start again without --resume"
    )
    write(tmp_path / "out", tmp_path / "log")


def test_another_model_does_not_write_the_other_half(tmp_path: Path) -> None:
    kill_at("started ContentAgent", tmp_path / "out", tmp_path / "log")
    with pytest.raises(PipelineError) as raised:
        run(tmp_path / "out", {}, resume=True)
    assert str(raised.value) == (
        "the run to resume was begun by the model rehearsal:scripted, not openai:real; "
        "choose that one, or start again without --resume"
    )


def test_a_torn_checkpoint_costs_one_step(tmp_path: Path) -> None:
    kill_at("started adapt_script", tmp_path / "out", tmp_path / "log")
    (tmp_path / "log").unlink()
    newest = max(DayFolder(tmp_path / "out", DAY).checkpoints.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    newest.write_bytes(newest.read_bytes()[:1000])
    write(tmp_path / "out", tmp_path / "log", resume=True)
    assert (tmp_path / "log").read_text().splitlines() == ASKED_ONCE[3:]


def test_checkpoints_that_cannot_be_read_count_for_nothing(tmp_path: Path) -> None:
    kill_at("started ContentAgent", tmp_path / "out", tmp_path / "log")
    (tmp_path / "log").unlink()
    for path in DayFolder(tmp_path / "out", DAY).checkpoints.iterdir():
        path.write_text("{torn")
    write(tmp_path / "out", tmp_path / "log", resume=True)
    assert (tmp_path / "log").read_text().splitlines() == ASKED_ONCE


def run(out: Path, turns: Any, runtime: Any = None, **options: Any) -> Episode:
    clients = {agent: ScriptedClient(turns.get(agent, []), **options.pop(agent, {})) for agent in AGENTS}
    model = Model(kind="openai", name="real", client=clients.__getitem__)
    options = {"rules": ANY_LENGTH, "checkpoints": True, **options}
    return asyncio.run(
        run_episode(day=DAY, out=out, model=model, open_runtime=lambda _: runtime or CannedRuntime(), **options)
    )


def test_an_answer_that_could_not_be_used_is_asked_for_again(tmp_path: Path) -> None:
    ordinary = {"SearchAgent": ["found"], "ContentAgent": ["shaped"], "GenScriptAgent": [SCRIPTS]}
    with pytest.raises(ModelError, match="ContentAgent ended with finish_reason 'length', not 'stop'"):
        run(tmp_path, ordinary, ContentAgent={"finish_reason": "length"})
    rest = {"SearchAgent": [], "ContentAgent": ["shaped"], "GenScriptAgent": [SCRIPTS]}
    assert run(tmp_path, rest, resume=True).record["resumed"] == 1


def test_a_rejected_script_is_asked_for_again(tmp_path: Path) -> None:
    rules = ScriptRules(shortest=5, longest=20, retries=1, sources=0)
    wrong = SCRIPTS.replace("早上好", "HELLO!")
    turns = {"SearchAgent": ["found"], "ContentAgent": ["shaped"], "GenScriptAgent": [wrong, wrong]}
    with pytest.raises(ScriptRejected):
        run(tmp_path, turns, rules=rules)
    rest = {"SearchAgent": [], "ContentAgent": [], "GenScriptAgent": [SCRIPTS]}
    assert run(tmp_path, rest, rules=rules, resume=True).record["script"]["drafts"] == 2


def test_a_sandbox_that_failed_costs_only_its_step(tmp_path: Path) -> None:
    def broken(code: str) -> Any:
        if code == "shape":
            raise SandboxError("the guest could not be restored")
        return outcome("ok\n")

    turns = {
        "SearchAgent": ["found"],
        "ContentAgent": [[call("execute_code", code="shape")], "shaped"],
        "GenScriptAgent": [SCRIPTS],
    }
    with pytest.raises(SandboxError):
        run(tmp_path, turns, CannedRuntime(broken))
    run(tmp_path, {**turns, "SearchAgent": []}, resume=True)


def test_a_full_disk_costs_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_arguments: Any, **_options: Any) -> None:
        raise OSError(28, "No space left on device")

    turns = {"SearchAgent": ["found"], "ContentAgent": ["shaped"], "GenScriptAgent": [SCRIPTS]}
    with monkeypatch.context() as patch:
        patch.setattr("wcpod.podcast.day_folder.exchange_files", full)
        with pytest.raises(PipelineError, match="No space left on device"):
            run(tmp_path, turns)
    run(tmp_path, {agent: [] for agent in turns}, resume=True)


def test_without_being_told_nothing_is_kept(tmp_path: Path) -> None:
    with pytest.raises(ModelError):
        asyncio.run(
            run_episode(
                day=DAY,
                out=tmp_path,
                model=scripted_model(finish_reason="length"),
                open_runtime=canned,
                rules=ANY_LENGTH,
            )
        )
    assert list(tmp_path.iterdir()) == []
