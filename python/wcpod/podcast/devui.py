"""The pipeline in Agent Framework's DevUI: its graph, what each agent says and does, and the episodes that it writes.

Needs the extra `devui`.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_framework import Workflow

from wcpod.podcast.day_folder import DayFolder
from wcpod.podcast.episode_writer import EpisodeWriter
from wcpod.podcast.models import Model
from wcpod.podcast.products import NOTES_ONLY, Products
from wcpod.podcast.run_record import RunRecord
from wcpod.podcast.script_check import ScriptRules
from wcpod.podcast.scripts import Scripts
from wcpod.podcast.show import Show, default_show
from wcpod.podcast.skills import check_skills
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
    pages: Path,
    show: Show | None = None,
    skills: Path | None = None,
    rules: ScriptRules | None = None,
    products: Products = NOTES_ONLY,
    force: bool = False,
) -> Workflow:
    """A workflow that may run again and again, one run at a time; its input is the day as YYYY-MM-DD.

    Args:
        pages: Where `runtime` records the pages that it reads.

    Raises:
        SkillError: if a skill is missing or malformed.
    """
    show = show or default_show()
    rules = rules or ScriptRules.of(show)
    check_skills(show, skills)
    record = RunRecord()
    writer = EpisodeWriter(
        show=show, rules=rules, model=model, record=record, pages=pages, products=products, force=force
    )
    folder = DayFolder(out, dt.date.min)
    served_before: dict[str, dict[str, int]] = {}

    def begin(day: dt.date) -> None:
        nonlocal folder, served_before
        folder = DayFolder(out, day)
        served_before = {agent: dict(names) for agent, names in runtime.host_call_counts.items()}
        record.clear()
        with folder.lock():
            writer.check_replaceable(folder)

    def save(scripts: Scripts) -> dict[str, Any]:
        with folder.lock():
            writer.check_replaceable(folder)
            return writer.save(folder, scripts, runtime, _difference(runtime.host_call_counts, served_before))

    return build_workflow(
        model,
        runtime,
        record,
        save,
        check=writer.check,
        sources=writer.sources,
        show=show,
        rules=rules,
        skills=skills,
        begin=begin,
    )


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
