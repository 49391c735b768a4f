"""The pipeline in Agent Framework's DevUI: its graph, what each agent says and does, and the episodes that it writes.

Needs the extra `devui`.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_framework import Workflow

from wcpod.podcast.day_folder import DayFolder
from wcpod.podcast.episode import episode_record
from wcpod.podcast.models import Model
from wcpod.podcast.products import NOTES_ONLY, Products
from wcpod.podcast.run import check_counters, check_replaceable
from wcpod.podcast.run_record import RunRecord
from wcpod.podcast.script_check import DEFAULT_RULES, ScriptRules
from wcpod.podcast.scripts import Scripts, save_scripts
from wcpod.podcast.skills import SHIPPED_SKILLS, check_skills
from wcpod.podcast.workflow import build_workflow

if TYPE_CHECKING:
    from wcpod import HyperlightRuntime


def serve(workflow: Workflow, *, port: int, token: str | None, browser: bool = False) -> None:
    """Show the workflow on 127.0.0.1 until interrupted.

    Args:
        token: What a client must present as bearer; without one, whoever can reach the port is let in.
        browser: Open one.

    Raises:
        ImportError: if the extra is missing.
    """
    from agent_framework_devui import serve as serve_entities

    serve_entities(
        entities=[workflow],
        host="127.0.0.1",
        port=port,
        auto_open=browser,
        auth_enabled=token is not None,
        auth_token=token,
    )


def build_devui_workflow(
    *,
    model: Model,
    runtime: HyperlightRuntime,
    out: Path,
    skills: Path = SHIPPED_SKILLS,
    rules: ScriptRules = DEFAULT_RULES,
    products: Products = NOTES_ONLY,
    force: bool = False,
) -> Workflow:
    """A workflow that may run again and again, one run at a time; its input is the day as YYYY-MM-DD.

    Raises:
        SkillError: if a skill is missing or malformed.
    """
    check_skills(skills)
    record = RunRecord()
    folder = DayFolder(out, dt.date.min)
    served_before: dict[str, dict[str, int]] = {}

    def begin(day: dt.date) -> None:
        nonlocal folder, served_before
        folder = DayFolder(out, day)
        served_before = {agent: dict(names) for agent, names in runtime.host_call_counts.items()}
        record.clear()
        with folder.lock():
            check_replaceable(folder, model, force=force)

    def save(scripts: Scripts) -> dict[str, Any]:
        with folder.lock():
            check_replaceable(folder, model, force=force)
            check_counters(record, _difference(runtime.host_call_counts, served_before))
            episode = episode_record(
                day=folder.day, model=model, isolation=runtime.isolation, record=record, scripts=scripts
            )
            save_scripts(scripts, folder, episode, products.of(scripts, episode, folder))
        return episode

    return build_workflow(model, runtime, record, save, rules=rules, skills=skills, begin=begin)


def _difference(now: dict[str, dict[str, int]], before: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """The host calls since `before`."""
    since = {
        agent: {
            name: number - before.get(agent, {}).get(name, 0)
            for name, number in names.items()
            if number != before.get(agent, {}).get(name, 0)
        }
        for agent, names in now.items()
    }
    return {agent: names for agent, names in since.items() if names}
