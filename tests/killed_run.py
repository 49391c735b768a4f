"""A run that is killed at a point of its choice, in a process of its own: `python killed_run.py OUT POINT LOG`.

A point is "started STEP", "ended STEP", "asked AGENT N" (while the model answers for the Nth time, from 0), "moving N"
(before the Nth file of the episode is put in place), "published" or "never". LOG gets a line for each time that an
agent is asked.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import signal
import sys
from pathlib import Path
from typing import Any

from canned_runtime import CannedRuntime, host_call
from scripted_model import SCRIPTS, ScriptedClient, Turn, call
from wcpod.podcast.models import Model
from wcpod.podcast.progress import EpisodeSaved, Event, StepEnded, StepStarted
from wcpod.podcast.run import Episode, run_episode
from wcpod.podcast.script_check import ScriptRules

DAY = dt.date(2026, 6, 15)
SKILLS = {"SearchAgent": "search-worldcup", "ContentAgent": "shape-content", "GenScriptAgent": "write-script"}
CALLS = (host_call(), host_call("blocked", reason="not on the allow-list"))


def turns(agent: str) -> list[Turn]:
    """Load a skill, run code, answer; GenScriptAgent's first answer breaks the rules."""
    final = ["no script yet", SCRIPTS] if agent == "GenScriptAgent" else [f"what {agent} found"]
    return [
        [call("load_skill", f"{agent}-1", skill_name=SKILLS[agent])],
        [call("execute_code", f"{agent}-2", code=f"print('{agent}')")],
        *final,
    ]


class LoggingClient(ScriptedClient):
    """Answers by the conversation alone, so that a resumed run goes on where it was; logs each request."""

    def __init__(self, agent: str, log: Path, kill_at: str = "never") -> None:
        super().__init__([])
        self.agent, self.log, self.kill_at = agent, log, kill_at

    def _inner_get_response(self, *, messages: Any, **options: Any) -> Any:
        answered = sum(message.role == "assistant" for message in messages)
        with self.log.open("a") as file:
            file.write(f"{self.agent} {answered}\n")
        if self.kill_at == f"asked {self.agent} {answered}":
            kill()
        self.turns = turns(self.agent)[answered:]
        return super()._inner_get_response(messages=messages, **options)


def kill() -> None:
    """As a power cut: nothing of this process gets to run any more."""
    os.kill(os.getpid(), signal.SIGKILL)


def write(out: Path, log: Path, *, point: str = "never", events: list[Event] | None = None, **options: Any) -> Episode:
    """Write the episode, up to the point; puts what happens into `events`."""

    def listener(event: Event) -> None:
        if events is not None:
            events.append(event)
        match event:
            case StepStarted(step):
                reached = f"started {step}"
            case StepEnded(step):
                reached = f"ended {step}"
            case EpisodeSaved():
                reached = "published"
            case _:
                return
        if reached == point:
            kill()

    return asyncio.run(
        run_episode(
            day=DAY,
            out=out,
            model=Model(
                kind="rehearsal", name="scripted", client=lambda a: LoggingClient(a, log, point), rehearsal=True
            ),
            open_runtime=lambda _: CannedRuntime(calls=CALLS),
            rules=ScriptRules(shortest=0, longest=10_000, retries=1, sources=0),
            listener=listener,
            **{"checkpoints": True, **options},
        )
    )


def kill_before_move(number: int) -> None:
    """Let the process die before the file of that number, counted from 0, is put in place."""
    rename = os.rename
    moved: list[str] = []

    def counting(source: str, target: str, **folders: int) -> None:
        if "src_dir_fd" in folders:
            if len(moved) == number:
                kill()
            moved.append(source)
        rename(source, target, **folders)

    setattr(os, "rename", counting)  # noqa: B010


if __name__ == "__main__":
    if sys.argv[2].startswith("moving "):
        kill_before_move(int(sys.argv[2].removeprefix("moving ")))
    write(Path(sys.argv[1]), Path(sys.argv[3]), point=sys.argv[2])
