"""One episode from start to finish: check, lock the day, run the graph, save."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_framework import MiddlewareFailure
from agent_framework.exceptions import AgentFrameworkException, WorkflowCheckpointException

from wcpod.exceptions import ModelError, PipelineError, ScriptFormatError, WcpodError
from wcpod.podcast.checkpoints import Checkpoints
from wcpod.podcast.day_folder import DayFolder
from wcpod.podcast.episode_writer import EpisodeWriter
from wcpod.podcast.models import Model
from wcpod.podcast.plain_files import read_plain_file
from wcpod.podcast.products import NOTES_ONLY, Products
from wcpod.podcast.progress import Listener, RunResumed, ignore
from wcpod.podcast.run_record import RunRecord
from wcpod.podcast.script_check import ScriptRejected, ScriptRules
from wcpod.podcast.scripts import Scripts
from wcpod.podcast.show import Show, default_show
from wcpod.podcast.skills import AGENTS, check_skills
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
    open_runtime: Callable[[Path], AbstractContextManager[HyperlightRuntime]],
    show: Show | None = None,
    skills: Path | None = None,
    rules: ScriptRules | None = None,
    pages: Path | None = None,
    products: Products = NOTES_ONLY,
    force: bool = False,
    checkpoints: bool = False,
    resume: bool = False,
    listener: Listener = ignore,
) -> Episode:
    """Write the episode of `day` into `out`. Safe to run twice: files appear whole, after everything else worked.

    Args:
        open_runtime: Opens the one sandbox that the three agents share; called after the checks, with the folder in
            which it is to record the pages that it reads (`HyperlightRuntime(record=)`).
        show: What the episode is about; the default show if none is given.
        skills: A folder of skills to use instead of the show's.
        rules: Rules of the script instead of the show's.
        pages: Folder for the pages that are read. By default they lie beside the day until its episode is saved.
        products: What to make beside the scripts.
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
        ScriptFormatError: if the last text does not hold exactly two scripts; the drafts are kept in
            `<out>/<YYMMDD>.drafts/`.
        ScriptRejected: if the script still breaks the rules, or says what no source gives; its drafts are kept there
            as well.
        NotEnoughSources: if too few pages were read.
        DiskFull: before any model call, or before the next one when a checkpoint could not be kept.
        PipelineError: if another run holds the day, the workflow did not end, or the files cannot be written.
        SandboxError: if the sandbox itself failed.
    """
    show = show or default_show()
    rules = rules or ScriptRules.of(show)
    check_skills(show, skills)
    folder = DayFolder(out, day)
    kept = Checkpoints(folder.checkpoints)
    record = RunRecord(listener)
    writer = EpisodeWriter(
        show=show,
        rules=rules,
        model=model,
        record=record,
        pages=pages or folder.pages,
        products=products,
        force=force,
    )
    with folder.lock():
        last = await kept.last(day, model) if resume else None
        if last is not None and (saved := _saved_by(last.state["run"], folder)) is not None:
            writer.publish(folder)
            _clear(kept, folder)
            return Episode(folder, saved)
        writer.check_replaceable(folder)
        if last is None:
            _clear(kept, folder)
        with _pages_kept(folder, keep=checkpoints or resume), open_runtime(pages or folder.pages) as runtime:

            def save(scripts: Scripts) -> dict[str, Any]:
                kept.give_back()
                return writer.save(folder, scripts, runtime, runtime.host_call_counts)

            storage = kept.open() if checkpoints or resume else None
            if storage is not None:
                record.check = lambda step: storage.check() if step in AGENTS else None
            workflow = build_workflow(
                model,
                runtime,
                record,
                save,
                check=writer.check,
                sources=writer.sources,
                show=show,
                rules=rules,
                skills=skills,
            )
            try:
                if last is None:
                    result = await workflow.run(day.isoformat(), checkpoint_storage=storage)
                else:
                    record.resumed_after = next(iter(last.messages), SAVE)
                    record.tell(RunResumed(after=record.resumed_after))
                    result = await workflow.run(checkpoint_id=last.checkpoint_id, checkpoint_storage=storage)
            except MiddlewareFailure as failure:
                if isinstance(failure.__cause__, WcpodError):
                    raise failure.__cause__ from None
                raise PipelineError(str(failure)) from failure
            except (ModelError, ScriptFormatError, ScriptRejected) as refused:
                kept.give_back()
                if record.drafts and isinstance(refused, ScriptRejected | ScriptFormatError):
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
        _clear(kept, folder)
        return Episode(folder, output)


def _clear(kept: Checkpoints, folder: DayFolder) -> None:
    """Forget what an earlier run of the day left to go on with."""
    kept.clear()
    shutil.rmtree(folder.pages, ignore_errors=True)


@contextlib.contextmanager
def _pages_kept(folder: DayFolder, *, keep: bool) -> Iterator[None]:
    """After a failure the pages stay only for a run that may go on."""
    try:
        yield
    except BaseException:
        if not keep or not folder.checkpoints.is_dir():
            shutil.rmtree(folder.pages, ignore_errors=True)
        raise


def _saved_by(run: str, folder: DayFolder) -> dict[str, Any] | None:
    """The episode of the day, if it is that of this run: it was cut off after it had saved."""
    try:
        episode: dict[str, Any] = json.loads(read_plain_file(folder.episode))
        del episode["files"]
        return episode if episode["run"] == run else None
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
