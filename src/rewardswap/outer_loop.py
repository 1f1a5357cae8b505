"""The outer loop of a run, made from its settings."""

from collections.abc import Callable, Sequence

from rewardswap.configuration import Run
from rewardswap.dense import DenseReward
from rewardswap.loops.budget import Budget
from rewardswap.loops.hacking import Alarm
from rewardswap.loops.hacking_watch import HackingWatch
from rewardswap.loops.loop import Loop
from rewardswap.loops.on_policy import OnPolicy
from rewardswap.loops.rspo import Rspo
from rewardswap.rewards.outcome import OutcomeReward
from rewardswap.task_stream import derived_seed
from rewardswap.trainer import Trainer
from rewardswap.types import Group


def make_loop(
    run: Run,
    trainer: Trainer,
    dense_reward: DenseReward,
    *,
    alarmed: Callable[[Alarm], None],
    refit: Callable[[Sequence[Group]], None],
) -> Loop:
    """The loop of a run; `alarmed` hears the hacking detector, `refit` gets all of a loop's groups
    where the dense reward is fitted again."""
    outcome, dense = OutcomeReward(), dense_reward.in_force
    budget = Budget(run.budget, run.budget_unit)
    watch = None if dense is None else HackingWatch(dense.name, alarmed)
    if run.loop != "rspo":
        return OnPolicy(
            trainer,
            run.batch,
            budget=budget,
            reward=outcome if dense is None else dense,
            before_scoring=dense_reward.before_scoring,
            watch=watch,
        )
    return Rspo(
        trainer,
        run.swap,
        run.batch,
        budget=budget,
        dense=dense or outcome,
        outcome=outcome,
        buffer=run.swap.buffer(derived_seed(run.seed, "replay")),
        before_scoring=dense_reward.before_scoring,
        after_loop=refit if dense_reward.refitted else None,
        watch=watch,
    )
