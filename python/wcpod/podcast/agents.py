"""The three agents of the pipeline: a harness agent each, with a stub of an instruction and two skills."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agent_framework import Agent, create_harness_agent

from wcpod.codeact import CodeActProvider, Runtime, make_tool_call_recorder, only_model_tools
from wcpod.podcast.models import Model
from wcpod.podcast.progress import make_skill_announcer
from wcpod.podcast.run_record import RunRecord
from wcpod.podcast.show import Show
from wcpod.podcast.skills import LoadOnlySkillsProvider, skill_folders

STUB = "You are a harness agent. Load your skills, then begin."


def build_agent(
    name: str, model: Model, runtime: Runtime, record: RunRecord, *, show: Show, skills: Path | None = None
) -> Agent[Any]:
    """One of `skills.AGENTS`, on the wire with `load_skill` and `execute_code` and no other tool.

    Every default of the harness is off: web search (a way round the sandbox), to-do list, plan mode, file memory,
    its own prompt and tool approval.
    """
    codeact = CodeActProvider(runtime, agent=name, on_call=record.on_call(name), observer=record.observe)
    return create_harness_agent(
        model.client(name),
        name=name,
        harness_instructions="",
        agent_instructions=STUB,
        disable_compaction=True,
        disable_todo=True,
        disable_mode=True,
        disable_file_memory=True,
        disable_web_search=True,
        disable_tool_auto_approval=True,
        skills_provider=LoadOnlySkillsProvider.from_folders(skill_folders(name, show, skills)),
        context_providers=[codeact],
        middleware=[
            make_tool_call_recorder(record.counts, name),
            make_skill_announcer(record.tell, name),
            only_model_tools,
        ],
        default_options=dict(model.options),
    )
