"""A run's parts, to be worked with by hand: the trainer, whose methods are the verbs, and more."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from rewardswap.assembly import prepared, rollouts_for_reward, stage_of, trainer_of
from rewardswap.configuration import Run
from rewardswap.dense import DenseReward
from rewardswap.evaluation import Evaluation, assert_disjoint
from rewardswap.learners import algorithms_of
from rewardswap.loops.loop import Loop
from rewardswap.outer_loop import make_loop
from rewardswap.replay import Replay
from rewardswap.rewards.base import RewardSource
from rewardswap.rewards.calling import CallableReward, RewardFunction
from rewardswap.rewards.outcome import OutcomeReward
from rewardswap.stage import Stage
from rewardswap.task_stream import derived_seed
from rewardswap.trainer import Trainer


@dataclass
class Parts:
    """What a run is made of, to be worked with by hand; `make_parts` makes it."""

    run: Run
    stage: Stage
    """The world, the panel that is evaluated, and the model that plays."""
    trainer: Trainer
    """Its methods are the verbs: collect, update, harvest, branch, become_explorer, restore."""
    rewards: DenseReward
    outcome: RewardSource
    """The true outcome, at each trajectory's last turn."""
    dense: RewardSource | None
    """The run's dense reward, fitted where it is learned; none where nothing learns under it."""
    buffer: Replay
    """The replay buffer of loop rspo."""
    record: list[Mapping[str, Any]] = field(default_factory=list)
    """The metrics of every update and harvest, with its phase: docs/metrics.md."""

    def loop(self) -> Loop:
        """The run's own loop on this trainer; `run` of it goes on to the end of the budget.

        Neither the detector of hacking nor an online process reward is part of it.
        """
        return make_loop(
            self.run, self.trainer, self.rewards, alarmed=lambda _: None, refit=lambda _: None
        )

    def evaluate(self) -> Evaluation:
        """Play every task of the panel once with the policy as it is; `total.success` is a share.

        The random numbers are the same each time.
        """
        return self.stage.evaluate(self.run.seed, self.run.evaluation_temperature)

    def save_pretrained(self, folder: Path | str) -> None:
        """Write the policy as a folder that transformers loads, an adapter merged into it."""
        self.stage.language_model.save_pretrained(folder)

    def close(self) -> None:
        """Give the engine's memory back, and end the worker processes."""
        self.stage.close()

    def __enter__(self) -> "Parts":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def make_parts(run: Run, dense: RewardFunction | RewardSource | None = None) -> Parts:
    """The parts of a run, made as `train` makes them, without a run folder.

    `dense` takes the place of the run's dense reward: a function that gives each turn of a
    trajectory a number, or a source of rewards. A process reward model that the run fits is fitted
    now. Raises ValueError saying what is wrong with a setting.
    """
    if dense is not None and not run.uses_dense_reward:
        raise ValueError(
            f"a dense reward does nothing in loop {run.loop!r} of this run; leave it out, or take "
            "loop rspo with swap.explore_steps above 0, or loop dense"
        )
    torch.set_num_threads(run.threads)
    torch.manual_seed(run.seed)
    # what is given is a rule: nothing is fitted, and no backbone is needed
    ruled = run if dense is None else replace(run, reward=replace(run.reward, dense="progress"))
    stage = stage_of(run)
    tasks = stage.world.tasks(run.env.train_split)
    assert_disjoint(tasks, stage.panel, may_share_origins=run.env.shares_origins)
    algorithms = algorithms_of(run)
    stage, start_model = prepared(ruled, stage, algorithms[0])
    rewards = DenseReward(ruled, stage.world.turn_limit, start_model)
    if dense is not None:
        rewards.source = dense if isinstance(dense, RewardSource) else CallableReward(dense)
    elif rewards.to_fit:
        rewards.fit(rollouts_for_reward(run, stage, tasks))
    record: list[Mapping[str, Any]] = []
    trainer = trainer_of(
        run,
        stage,
        tasks,
        algorithms,
        start_model,
        play=stage.play,
        report=lambda metrics, phase, _: record.append({"phase": phase, **metrics}),
    )
    buffer = run.swap.buffer(derived_seed(run.seed, "replay"))
    return Parts(run, stage, trainer, rewards, OutcomeReward(), rewards.in_force, buffer, record)
