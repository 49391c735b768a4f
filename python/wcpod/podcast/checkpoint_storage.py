"""Where the framework keeps its checkpoints, with one difference: one that cannot be kept ends the run.

The framework only logs that, and would go on asking agents whose answers nothing keeps.
"""

from __future__ import annotations

from pathlib import Path

from agent_framework import FileCheckpointStorage, WorkflowCheckpoint

from wcpod.podcast.reserve import DiskFull, Reserve


class CheckpointStorage(FileCheckpointStorage):
    """Checkpoints in `folder`. When the disk is full the reserve is given back, and the save tried again."""

    def __init__(self, folder: Path, reserve: Reserve) -> None:
        super().__init__(folder)
        self._folder, self._reserve = folder, reserve
        self._failure: OSError | None = None

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        """Save a checkpoint and return its name."""
        try:
            try:
                return await super().save(checkpoint)
            except OSError:
                if not self._reserve.give_back():
                    raise
                return await super().save(checkpoint)
        except OSError as error:
            self._failure = error
            raise

    def check(self) -> None:
        """Called before an agent is asked.

        Raises:
            DiskFull: if the last step could not be kept.
        """
        if (failure := self._failure) is not None:
            raise DiskFull(
                f"what was done could not be kept in {self._folder} ({failure.strerror or failure}): make room there; "
                "no further agent was asked"
            ) from failure
