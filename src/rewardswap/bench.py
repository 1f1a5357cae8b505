"""A run's parts on a workbench: the trainer whose methods are the verbs, and what they need."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from rewardswap.configuration import Run
from rewardswap.dense import DenseReward
from rewardswap.evaluation import Evaluation, assert_disjoint
from rewardswap.learners import algorithms_of, make_learners
from rewardswap.loops.loop import Loop
from rewardswap.models.adapter import add_adapter
from rewardswap.models.precision import round_weights
from rewardswap.outer_loop import make_loop
from rewardswap.prm.collection import collect_for_reward
from rewardswap.replay import Replay
from rewardswap.rewards.base import RewardSource
from rewardswap.rewards.calling import CallableReward, RewardFunction
from rewardswap.rewards.outcome import OutcomeReward
from rewardswap.stage import Stage, make_stage
from rewardswap.task_stream import derived_seed
from rewardswap.trainer import Trainer


@dataclass
class Bench:
    """What a run is made of, to be worked with by hand; `make_bench` makes it."""

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

    def __enter__(self) -> "Bench":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def make_bench(run: Run, dense: RewardFunction | RewardSource | None = None) -> Bench:
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
    stage = _stage_of(run)
    tasks = stage.world.tasks(run.env.train_split)
    assert_disjoint(tasks, stage.panel, may_share_origins=run.env.shares_origins)
    algorithm, explorer = algorithms_of(run)
    learned = run.uses_dense_reward and run.reward.learned and dense is None
    copied = algorithm.needs_reference and run.policy.lora_rank is None
    start_model = _start_model(run, stage, kept=learned or copied)
    rewards = _rewards(run, stage, start_model, dense)
    learners = make_learners(run.policy, stage.language_model.model, start_model, algorithm)
    record: list[Mapping[str, Any]] = []

    def linear(updates: int) -> float:
        return run.policy.learning_rate * (1 - updates / run.budget)

    trainer = Trainer(
        policy=learners.policy,
        play=stage.play,
        algorithm=algorithm,
        explorer_algorithm=explorer,
        explorer_minibatches=run.swap.explorer_minibatches,
        critic=learners.critic,
        training_tasks=tasks,
        seed=run.seed,
        minibatches=run.policy.minibatches,
        reference=learners.reference,
        on_failed_reward=run.reward.on_failure,
        failure_limit=run.rollout.failure_limit,
        most_skipped=run.checkpoint.most_skipped,
        learning_rate=linear if run.policy.decay == "linear" else None,
        report=lambda metrics, phase, _: record.append({"phase": phase, **metrics}),
    )
    buffer = run.swap.buffer(derived_seed(run.seed, "replay"))
    return Bench(run, stage, trainer, rewards, OutcomeReward(), rewards.in_force, buffer, record)


def _stage_of(run: Run) -> Stage:
    policy = run.policy
    return make_stage(
        run.env,
        policy.model,
        device=policy.device,
        temperature=policy.temperature,
        action_tokens=policy.action_tokens,
        rollout=run.rollout,
        precision=policy.precision,
        chat_template=policy.chat_template,
    )


def _start_model(run: Run, stage: Stage, *, kept: bool) -> nn.Module | None:
    """The start policy, a copy where it is kept; the model gets its precision and its adapter."""
    model, policy = stage.language_model.model, run.policy
    if policy.precision == "bfloat16":
        round_weights(model)
    start_model = copy.deepcopy(model).requires_grad_(False) if kept else None
    if policy.lora_rank is not None:
        add_adapter(model, policy.lora_rank, policy.lora_alpha, policy.lora_targets)
    return start_model


def _rewards(
    run: Run,
    stage: Stage,
    start_model: nn.Module | None,
    dense: RewardFunction | RewardSource | None,
) -> DenseReward:
    """The dense reward of the run, fitted, or the one that is given."""
    if dense is not None:
        rule = replace(run, reward=replace(run.reward, dense="progress"))
        rewards = DenseReward(rule, stage.world.turn_limit, None)
        rewards.source = dense if isinstance(dense, RewardSource) else CallableReward(dense)
        return rewards
    rewards = DenseReward(run, stage.world.turn_limit, start_model)
    if rewards.to_fit:
        rewards.fit(
            collect_for_reward(
                stage.play,
                stage.world.tasks(run.env.train_split),
                seed=derived_seed(run.seed, "reward"),
                trajectories=run.reward.trajectories,
                group_size=run.reward.group_size,
                temperatures=run.reward.temperatures,
            )
        )
    return rewards
