"""The base method alone: collect, update, repeat."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rewardswap.loops.budget import Budget
from rewardswap.loops.hacking_watch import HackingWatch
from rewardswap.loops.loop import Loop
from rewardswap.loops.settings import Batch
from rewardswap.rewards.base import RewardSource
from rewardswap.trainer import Trainer
from rewardswap.types import Group


class OnPolicy(Loop):
    """Updates on fresh rollouts of whole batches, under one reward."""

    def __init__(
        self,
        trainer: Trainer,
        batch: Batch,
        *,
        budget: Budget,
        reward: RewardSource,
        before_scoring: Callable[[Sequence[Group]], None] = lambda _: None,
        watch: HackingWatch | None = None,
    ) -> None:
        """`before_scoring` sees each batch first, `watch` when a dense reward has scored it."""
        super().__init__(trainer, budget)
        self.batch = batch
        self.reward = reward
        self.before_scoring = before_scoring
        self.watch = watch

    def step(self) -> None:
        """One update."""
        trainer, tasks = self.trainer, self.batch.tasks
        seen = self.take("learn", tasks, self.batch.group_size)
        following = self.begin("learn", tasks, seen)
        self.before_scoring(seen.groups)
        trainer.update(seen, self.reward, "learn", before_scoring=self.before_scoring)
        self.ahead = following()
        if self.watch is not None:
            self.watch.see(trainer.labelled)

    def leave(self) -> None:
        """Nothing: the agent is never away."""

    def state(self) -> dict[str, Any]:
        """What the watch knows, and what is played ahead."""
        watch = {} if self.watch is None else {"watch": self.watch.state()}
        return {**watch, "ahead": self.ahead}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state`."""
        self.ahead = state.get("ahead")
        if self.watch is not None:
            self.watch.restore(state["watch"])
