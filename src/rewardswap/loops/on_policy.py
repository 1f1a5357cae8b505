"""The base method alone: collect, update, repeat."""

from rewardswap.rewards.base import RewardSource
from rewardswap.trainer import Trainer


def on_policy(
    trainer: Trainer, *, updates: int, tasks: int, group_size: int, reward: RewardSource
) -> None:
    """`updates` updates on fresh rollouts of `tasks` x `group_size` episodes each."""
    while trainer.agent_updates < updates:
        trainer.update(trainer.collect("learn", tasks, group_size), reward, "learn")
