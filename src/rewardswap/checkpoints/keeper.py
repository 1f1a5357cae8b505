"""When a run is kept: between two pieces of work, and where it stops."""

from collections.abc import Callable, Mapping
from typing import Any

from rewardswap.checkpoints.files import Checkpoints
from rewardswap.errors import RunStoppedError
from rewardswap.trainer import Trainer


class Keeper:
    """Writes checkpoints of one run.

    What is light is looked at behind every piece of work; what learns is taken from the trainer
    when a checkpoint is written. So a run that stops in the middle of a piece, before anything has
    learned from it, is kept as it was in front of the piece.
    """

    def __init__(
        self,
        checkpoints: Checkpoints,
        trainer: Trainer,
        every: int,
        light: Callable[[], Mapping[str, Any]],
        sync: Callable[[], None],
    ) -> None:
        """`every` counts updates; 0: nothing is written. `light` is all but what learns, `sync`
        brings the record that it speaks of onto the disk."""
        self.checkpoints = checkpoints
        self.trainer = trainer
        self.every = every
        self.light = light
        self.sync = sync
        self.pieces = 0
        self.trouble = ""
        """Why the last checkpoint could not be written, where the run had stopped already."""
        self._written_at = -1

    def begin(self, pieces: int = 0) -> None:
        """The run begins, or goes on behind so many pieces of work."""
        self.pieces = pieces
        self._look()
        if not pieces:
            self._write()
        self._written_at = self._updates

    def between(self) -> None:
        """One more piece of work is done; a checkpoint where one is due."""
        self.pieces += 1
        self._look()
        if self._updates >= self._written_at + self.every:
            self.keep()

    def keep(self) -> None:
        """A checkpoint of what was looked at last; raises RunStoppedError if it cannot be."""
        self._write()
        self._written_at = self._updates

    def stopped(self) -> None:
        """A checkpoint of the last moment that can be kept; the older ones are there otherwise."""
        if self.trainer.changes != self._changes:
            return
        try:
            self._write()
        except RunStoppedError as error:
            self.trouble = str(error)

    @property
    def _updates(self) -> int:
        return self.trainer.counters["all_updates"]

    def _look(self) -> None:
        self._seen = self.light()
        self._changes = self.trainer.changes

    def _write(self) -> None:
        if self.every:
            self.sync()
            learners = self.trainer.learners()
            self.checkpoints.write(self.pieces, {**self._seen, "learners": learners})
