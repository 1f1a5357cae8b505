"""The course of a run: its loop, from the start or from a checkpoint, kept as it goes."""

import sys
from functools import partial
from typing import Any

from rewardswap.checkpoints.files import Checkpoints, Found
from rewardswap.checkpoints.keeper import Keeper
from rewardswap.configuration import Run
from rewardswap.errors import RunStoppedError, StopAskedError
from rewardswap.interrupts import Interrupts
from rewardswap.loops.loop import Loop
from rewardswap.run_folder import RunFolder
from rewardswap.run_state import RunState, fitting
from rewardswap.screen import Screen
from rewardswap.trainer import Trainer


class Course:
    """Runs a loop to its end, or to where something stops it."""

    def __init__(
        self,
        trainer: Trainer,
        loop: Loop,
        known: RunState,
        folder: RunFolder,
        checkpoints: Checkpoints,
    ) -> None:
        self.trainer = trainer
        self.loop = loop
        self.known = known
        self.folder = folder
        self.checkpoints = checkpoints

    def run(self, run: Run, interrupts: Interrupts, screen: Screen, found: Found | None) -> None:
        """From the start, or from what was `found`.

        Raises RunStoppedError where the run cannot go on, and StopAskedError at Ctrl-C; a
        checkpoint is written first, where one can be.
        """
        every = run.checkpoint.every
        keeper = Keeper(self.checkpoints, self.trainer, every, self._light, self.folder.sync)
        if found is not None:
            self._go_on(found, screen)
        keeper.begin(0 if found is None else found.number)
        del found  # its tensors are not needed any more

        def between() -> None:
            keeper.between()
            self._refuse_spoiled()
            interrupts.check_all()

        try:
            with interrupts.heard_by(screen.stopping):
                self.loop.run(between, partial(self._stopped, keeper))
        except (Exception, StopAskedError) as error:
            if keeper.trouble:
                error.add_note(keeper.trouble)
            raise
        if not self.trainer.agent_updates:
            raise RunStoppedError(
                f"the budget of {run.budget} {run.budget_unit} was spent before the agent's first "
                "update; set `budget` higher, or swap.explore_steps lower"
            )
        keeper.keep()

    def _stopped(self, keeper: Keeper) -> None:
        """A last checkpoint, where all ranks stop together: what one of them met, it met alone."""
        if self.trainer.policy.ranks.size == 1 or isinstance(sys.exception(), StopAskedError):
            keeper.stopped()

    def _light(self) -> dict[str, Any]:
        """Everything that the run, its trainer and its loop know, but what learns."""
        return {
            **self.known.state(),
            "sizes": self.folder.sizes(),
            "trainer": self.trainer.state(),
            "loop": self.loop.state(),
        }

    def _go_on(self, found: Found, screen: Screen) -> None:
        """Bring trainer and loop back, and then the record to where it was."""
        state = found.state
        with fitting(found.number):
            self.trainer.resume(state["trainer"], state["learners"])
            self.loop.restore(state["loop"])
        cut = self.folder.cut(state["sizes"])
        self.checkpoints.go_on_from(found.number)
        update = self.trainer.agent_updates
        self.folder.add_resume(
            checkpoint=found.number,
            update=update,
            bytes_played_again=cut,
            passed_over=list(found.passed_over),
        )
        screen.resumed(update, found.passed_over)

    def _refuse_spoiled(self) -> None:
        """Raise RunStoppedError after too many optimizer steps in a row that were not finite."""
        trainer = self.trainer
        if trainer.spoiling is not None:
            try:
                kept = f"the last batch is in {self.folder.write_batch(trainer.spoiling)}"
            except RunStoppedError as error:
                kept = f"the last batch was not kept: {error}"
            raise RunStoppedError(
                f"the loss or the gradient of {trainer.most_skipped} optimizer steps in a row was "
                f"not finite; {kept}; set policy.learning_rate lower, or repair what the batch "
                "shows"
            )
