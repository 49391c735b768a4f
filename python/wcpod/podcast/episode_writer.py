"""What stands at both ends of the graph, for a run on its own and in DevUI: checks before it, saving after it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wcpod.exceptions import PipelineError
from wcpod.podcast.all_days import COVER
from wcpod.podcast.day_folder import DayExists, DayFolder
from wcpod.podcast.editor import Editor, sources_problem
from wcpod.podcast.episode import episode_record
from wcpod.podcast.models import Model
from wcpod.podcast.products import Products
from wcpod.podcast.progress import EpisodeSaved
from wcpod.podcast.run_record import RunRecord
from wcpod.podcast.script_check import ScriptRules
from wcpod.podcast.scripts import Scripts, save_scripts
from wcpod.podcast.shelf import pages_read
from wcpod.podcast.show import Show

if TYPE_CHECKING:
    from wcpod import HyperlightRuntime

Counts = Mapping[str, Mapping[str, int]]


class EpisodeWriter:
    """Checks and saves the episodes of one show."""

    def __init__(
        self,
        *,
        show: Show,
        rules: ScriptRules,
        model: Model,
        record: RunRecord,
        pages: Path,
        products: Products,
        force: bool,
    ) -> None:
        """Takes what does not change from run to run.

        Args:
            pages: Where the runtime records the pages that it reads.
            force: Replace an episode that the day already has.
        """
        self._show, self._rules, self._model = show, rules, model
        self._record, self._pages, self._products, self._force = record, pages, products, force

    def check_replaceable(self, folder: DayFolder) -> None:
        """Raise `DayExists` if the model may not write this day."""
        if folder.existing() != "episode":
            return
        if self._model.rehearsal:
            raise DayExists(f"{folder.path} holds an episode; a rehearsal does not replace it. Choose another folder.")
        if not self._force:
            raise DayExists(f"{folder.path} holds an episode already; nothing was changed. To write it again: --force")

    def sources(self) -> str | None:
        """What is wrong with the pages that were read so far, if anything."""
        failed = [
            (timed.call.fetch.url if timed.call.fetch else timed.call.name, timed.call.reason or timed.call.status)
            for timed in self._record.host_calls
            if timed.call.name == "fetch_url" and timed.call.status != "ok"
        ]
        return sources_problem(pages_read(self._pages, self._record.host_calls), self._rules.sources, failed)

    def check(self, day: dt.date, scripts: Scripts) -> list[str]:
        """What the editor has to say of the scripts."""
        few = self.sources()
        return [
            *([f"The {few[4:]}." if few.startswith("the ") else few] if few else []),
            *self._editor(day).problems(scripts),
        ]

    def save(self, folder: DayFolder, scripts: Scripts, runtime: HyperlightRuntime, served: Counts) -> dict[str, Any]:
        """Write the episode; the day is locked by the caller.

        Args:
            served: Agent → name → host calls that the runtime served in this run.
        """
        check_counters(self._record, served)
        editor = self._editor(folder.day)
        episode = episode_record(
            day=folder.day,
            show=self._show,
            model=self._model,
            isolation=runtime.isolation,
            record=self._record,
            scripts=scripts,
            editor=editor.record(scripts.simplified, required=self._rules.sources, samples=self._model.rehearsal),
        )
        files = save_scripts(scripts, folder, episode, self._products.of(scripts, episode, folder, names=self._names()))
        self._record.tell(EpisodeSaved(files))
        self.publish(folder)
        return episode

    def publish(self, folder: DayFolder) -> None:
        """Renew what spans the days, after the episode of one is saved."""
        self._products.publish(folder, cover=self._show.folder / COVER)

    def _names(self) -> list[str]:
        return [name.simplified for name in self._show.names if name.kind != "word"]

    def _editor(self, day: dt.date) -> Editor:
        return Editor(self._show, day, pages_read(self._pages, self._record.host_calls))


def check_counters(record: RunRecord, served: Counts) -> None:
    """Three must have seen the same calls: the counter that callbacks feed, the results of the executions, the runtime.

    Raises:
        PipelineError: if they did not.
    """
    counted: dict[str, dict[str, int]] = {}
    for agent, call in record.counts.host_calls():
        _add(counted, agent, {call.name: 1})
    total: dict[str, dict[str, int]] = {}
    for agent, names in (*record.host_calls_before_resume.items(), *served.items()):
        _add(total, agent, names)
    reported = {agent: names for agent, names in record.reported.items() if names}
    if not counted == total == reported:
        raise PipelineError(
            f"the counters disagree: {counted} were counted, the results report {reported}, but the host served {total}"
        )


def _add(counts: dict[str, dict[str, int]], agent: str, names: Mapping[str, int]) -> None:
    for name, number in names.items():
        kept = counts.setdefault(agent, {})
        kept[name] = kept.get(name, 0) + number
