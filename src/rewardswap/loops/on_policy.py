"""The base method alone: collect, update, repeat."""

from collections.abc import Callable, Sequence

from rewardswap.loops.budget import Budget
from rewardswap.loops.hacking_watch import HackingWatch
from rewardswap.rewards.base import RewardSource
from rewardswap.trainer import Trainer
from rewardswap.types import Group


def on_policy(
    trainer: Trainer,
    *,
    budget: Budget,
    tasks: int,
    group_size: int,
    reward: RewardSource,
    before_scoring: Callable[[Sequence[Group]], None] = lambda _: None,
    watch: HackingWatch | None = None,
) -> None:
    """Updates on fresh rollouts of `tasks` x `group_size` episodes until the budget is spent.

    `before_scoring` sees each batch first, `watch` when it is scored by a dense reward.
    """
    while not budget.spent(trainer):
        seen = trainer.collect("learn", tasks, group_size)
        before_scoring(seen.groups)
        trainer.update(seen, reward, "learn", before_scoring=before_scoring)
        if watch is not None:
            watch.see(trainer.labelled)
