"""The checkpoints of a run: one after each step of the graph, kept beside the day until its episode is saved.

They are the framework's own files, and those hold pickled values: whoever can write into the folder decides what a
resumed run does. The folder is for its owner alone.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import stat
from pathlib import Path

from agent_framework import WorkflowCheckpoint

from wcpod.exceptions import PipelineError
from wcpod.podcast.checkpoint_storage import CheckpointStorage
from wcpod.podcast.models import Model
from wcpod.podcast.plain_files import is_plain_file, names_in, open_folder
from wcpod.podcast.reserve import DiskFull, Reserve

WORKFLOW = "wcpod"


class ResumeRefused(PipelineError):
    """There are checkpoints, and the run may not go on from them."""


class Checkpoints:
    """The checkpoints in `folder`, of one day's run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._reserve = Reserve(folder)

    def open(self) -> CheckpointStorage:
        """The storage to run with. It holds room on the disk that `give_back` frees.

        Raises:
            DiskFull: if there is no room.
            PipelineError: if the folder cannot be made.
        """
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise PipelineError(f"cannot use the folder {self._folder}: {error.strerror}") from error
        try:
            self._reserve.take()
        except DiskFull:
            with contextlib.suppress(OSError):
                self._folder.rmdir()  # what an earlier run left stays
            raise
        return self._storage()

    def give_back(self) -> None:
        """Free the room that was held for the work of the run."""
        self._reserve.give_back()

    async def last(self, day: dt.date, model: Model) -> WorkflowCheckpoint | None:
        """The newest checkpoint, or None if no step was done.

        Raises:
            ResumeRefused: if it is of another model, which would have half an episode each; or if others could have
                written the checkpoints.
        """
        if not self._folder.is_dir():
            return None
        status = self._folder.stat()
        if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise ResumeRefused(
                f"others than the user of this process can write into {self._folder}, so its checkpoints are not to be "
                "trusted; start again without --resume"
            )
        checkpoint = await self._storage().get_latest(workflow_name=WORKFLOW)
        if checkpoint is None or checkpoint.state.get("day") != day.isoformat():
            return None
        begun_by, written_by = checkpoint.state["model"], model_label(model)
        if begun_by != written_by:
            raise ResumeRefused(
                f"the run to resume was begun by the model {begun_by}, not {written_by}; "
                "choose that one, or start again without --resume"
            )
        return checkpoint

    async def forget_last(self) -> None:
        """Remove the newest checkpoint: the answer in it could not be used, and its agent is to be asked again."""
        storage = self._storage()
        if (newest := await storage.get_latest(workflow_name=WORKFLOW)) is not None:
            await storage.delete(newest.checkpoint_id)

    def clear(self) -> None:
        """Remove them all. What else somebody put into the folder stays, and the folder with it."""
        with contextlib.suppress(OSError):
            with open_folder(self._folder) as folder:
                for name in names_in(folder):
                    if name.endswith((".json", ".tmp")) and is_plain_file(name, within=folder):
                        os.unlink(name, dir_fd=folder)
            self._folder.rmdir()

    def _storage(self) -> CheckpointStorage:
        return CheckpointStorage(self._folder, self._reserve)


def model_label(model: Model) -> str:
    """Kind and name, as in `openai:qwen3`."""
    return f"{model.kind}:{model.name}"
