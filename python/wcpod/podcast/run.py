"""One episode from start to finish: check, lock the day, run the graph, save."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_framework import MiddlewareFailure
from agent_framework.exceptions import AgentFrameworkException, WorkflowCheckpointException

from wcpod.exceptions import ModelError, PipelineError, ScriptFormatError, WcpodError
from wcpod.podcast.agents import AGENTS
from wcpod.podcast.checkpoints import Checkpoints
from wcpod.podcast.day_folder import DayExists, DayFolder
from wcpod.podcast.episode import episode_record
from wcpod.podcast.models import Model
from wcpod.podcast.plain_files import read_plain_file
from wcpod.podcast.products import NOTES_ONLY, Products
from wcpod.podcast.progress import EpisodeSaved, Listener, RunResumed, ignore
from wcpod.podcast.run_record import RunRecord
from wcpod.podcast.script_check import DEFAULT_RULES, ScriptRejected, ScriptRules
from wcpod.podcast.scripts import Scripts, save_scripts
from wcpod.podcast.skills import SHIPPED_SKILLS, check_skills
from wcpod.podcast.workflow import SAVE, build_workflow, output_of

if TYPE_CHECKING:
    from wcpod import HyperlightRuntime


@dataclass(frozen=True, slots=True)
class Episode:
    """A saved episode: where its files are, and the content of `episode.json`, but for the hashes of the files."""

    folder: DayFolder
    record: dict[str, Any]


async def run_episode(
    *,
    day: dt.date,
    out: Path,
    model: Model,
    open_runtime: Callable[[], AbstractContextManager[HyperlightRuntime]],
    skills: Path = SHIPPED_SKILLS,
    rules: ScriptRules = DEFAULT_RULES,
    products: Products = NOTES_ONLY,
    force: bool = False,
    checkpoints: bool = False,
    resume: bool = False,
    listener: Listener = ignore,
) -> Episode:
    """Write the episode of `day` into `out`. Safe to run twice: files appear whole, after everything else worked.

    Args:
        products: What to make beside the scripts.
        open_runtime: Opens the one sandbox that the three agents share; called after the checks.
        force: Replace an episode that the day already has. A rehearsal never replaces an episode of a real model,
            and may itself be replaced without this.
        checkpoints: Keep a checkpoint after each step in `<out>/<YYMMDD>.checkpoints/` until the episode is saved.
        resume: Go on from the newest of these checkpoints, without asking an agent again that was done; from the
            start if there is none. Implies `checkpoints`.

    Raises:
        SkillError: before any model call.
        DayExists: before any model call.
        ModelError: if a model could not be reached or did not end normally.
        ToolSurfaceError: if the model was offered, or called, anything but its two tools.
        ScriptFormatError: if the last text does not hold exactly two scripts.
        ScriptRejected: if the script still breaks the rules; its drafts are kept in `<out>/<YYMMDD>.drafts/`.
        PipelineError: if another run holds the day, the workflow did not end, or the files cannot be written.
        SandboxError: if the sandbox itself failed.
    """
    check_skills(skills)
    folder = DayFolder(out, day)
    kept = Checkpoints(folder.checkpoints)
    with folder.lock():
        last = await kept.last(day, model) if resume else None
        if last is not None and (saved := _saved_by(last.state["run"], folder)) is not None:
            kept.clear()
            return Episode(folder, saved)
        check_replaceable(folder, model, force=force)
        record = RunRecord(listener)
        with open_runtime() as runtime:

            def save(scripts: Scripts) -> dict[str, Any]:
                check_counters(record, runtime.host_call_counts)
                episode = episode_record(
                    day=day, model=model, isolation=runtime.isolation, record=record, scripts=scripts
                )
                files = save_scripts(scripts, folder, episode, products.of(scripts, episode, folder))
                record.tell(EpisodeSaved(files))
                return episode

            if last is None:
                kept.clear()
            storage = kept.open() if checkpoints or resume else None
            workflow = build_workflow(model, runtime, record, save, rules=rules, skills=skills)
            try:
                if last is None:
                    result = await workflow.run(day.isoformat(), checkpoint_storage=storage)
                else:
                    record.tell(RunResumed(after=next(iter(last.messages), SAVE)))
                    result = await workflow.run(checkpoint_id=last.checkpoint_id, checkpoint_storage=storage)
            except MiddlewareFailure as failure:
                if isinstance(failure.__cause__, WcpodError):
                    raise failure.__cause__ from None
                raise PipelineError(str(failure)) from failure
            except (ModelError, ScriptFormatError, ScriptRejected) as refused:
                if isinstance(refused, ScriptRejected):
                    folder.keep_drafts(record.drafts)
                if storage is not None and record.open_step not in AGENTS:
                    await kept.forget_last()
                raise
            except WorkflowCheckpointException as error:
                raise PipelineError(
                    f"cannot go on from the checkpoints in {folder.checkpoints} ({error}); start again without --resume"
                ) from error
            except AgentFrameworkException as error:
                raise ModelError(f"the model {model.name} failed: {error}") from error
            output = output_of(result)
        kept.clear()
        return Episode(folder, output)


def _saved_by(run: str, folder: DayFolder) -> dict[str, Any] | None:
    """The episode of the day, if it is that of this run: it was cut off after it had saved."""
    try:
        episode: dict[str, Any] = json.loads(read_plain_file(folder.episode))
        del episode["files"]
        return episode if episode["run"] == run else None
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def check_replaceable(folder: DayFolder, model: Model, *, force: bool) -> None:
    """Raise `DayExists` if the model may not write this day."""
    existing = folder.existing()
    if existing != "episode":
        return
    if model.rehearsal:
        raise DayExists(f"{folder.path} holds an episode; a rehearsal does not replace it. Choose another folder.")
    if not force:
        raise DayExists(f"{folder.path} holds an episode already; nothing was changed. To write it again: --force")


def check_counters(record: RunRecord, host: dict[str, dict[str, int]]) -> None:
    """Both ends of the bridge must have seen the same calls."""
    counted: dict[str, dict[str, int]] = {}
    for agent, call in record.counts.host_calls():
        names = counted.setdefault(agent, {})
        names[call.name] = names.get(call.name, 0) + 1
    served = {agent: dict(names) for agent, names in record.host_calls_before_resume.items()}
    for agent, numbers in host.items():
        names = served.setdefault(agent, {})
        for name, number in numbers.items():
            names[name] = names.get(name, 0) + number
    if counted != served:
        raise PipelineError(f"the counters disagree: {counted} were counted, but the host served {served}")
