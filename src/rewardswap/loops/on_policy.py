"""The base method alone: collect, update, repeat."""

from rewardswap.loops.budget import Budget
from rewardswap.rewards.base import RewardSource
from rewardswap.trainer import Trainer


def on_policy(
    trainer: Trainer, *, budget: Budget, tasks: int, group_size: int, reward: RewardSource
) -> None:
    """Updates on fresh rollouts of `tasks` x `group_size` episodes until the budget is spent."""
    while not budget.spent(trainer):
        trainer.update(trainer.collect("learn", tasks, group_size), reward, "learn")
