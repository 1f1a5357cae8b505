"""Trainers of tiny models in a made-up world, and what is looked at from outside."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from made import MadePlay, made_trajectory, small_llama, small_policy
from rewardswap.loops.budget import Budget
from rewardswap.loops.on_policy import OnPolicy
from rewardswap.loops.rspo import Rspo
from rewardswap.loops.settings import Batch as Sizes
from rewardswap.loops.settings import RewardSwap
from rewardswap.methods.grpo import GRPO
from rewardswap.models.batching import Batch
from rewardswap.models.critic import Critic, ValueModel
from rewardswap.models.learner import Learner, Metrics, Snapshot
from rewardswap.replay import Replay
from rewardswap.rewards.outcome import OutcomeReward
from rewardswap.rewards.rule import ProgressReward
from rewardswap.rollout.episodes import EpisodeRequest, Played
from rewardswap.trainer import Trainer
from rewardswap.types import Group, Task, Trajectory

TASKS = [Task(f"task-{n}", "family") for n in range(6)]
SEED = 3


class WholeLearner(Learner):
    """A learner whose model is its trunk."""

    @property
    def trunk(self) -> torch.nn.Module:
        return self.model


class Record:
    """What the trainer reports: (phase, metrics, groups) of every update and harvest."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, Metrics, list[Group]]] = []

    def __call__(self, metrics: Metrics, phase: str, groups: Sequence[Group]) -> None:
        self.rows.append((phase, dict(metrics), list(groups)))

    def metric(self, name: str, phase: str = "learn") -> list[float]:
        return [metrics[name] for found, metrics, _ in self.rows if found == phase]


def small_critic(learning_rate: float = 0.01, *, blank: bool = False) -> Critic:
    """A critic whose head says something from the start, unless it is `blank`."""
    model = ValueModel(small_llama(1))
    if not blank:
        with torch.no_grad():
            model.head.weight.copy_(torch.linspace(-0.3, 0.4, 16)[None])
            model.head.bias.fill_(0.2)
    return Critic(
        model, make_optimizer=lambda m: torch.optim.AdamW(m.parameters(), lr=learning_rate)
    )


def trainer_of(play: Any, record: Record | None = None, **settings: Any) -> Trainer:
    algorithm = settings.pop("algorithm", GRPO().algorithm())
    if algorithm.critic is not None:
        settings.setdefault("critic", small_critic())
    return Trainer(
        policy=settings.pop("policy", None) or small_policy(),
        play=play,
        algorithm=algorithm,
        training_tasks=TASKS,
        seed=SEED,
        report=record or Record(),
        **settings,
    )


def run_rspo(
    trainer: Trainer,
    swap: RewardSwap,
    batch: Sizes,
    updates: int | Budget,
    dense: Any = None,
    buffer: Replay | None = None,
    **more: Any,
) -> Replay:
    if buffer is None:
        buffer = swap.buffer(5)
    Rspo(
        trainer,
        swap,
        batch,
        budget=updates if isinstance(updates, Budget) else Budget(updates),
        dense=dense or ProgressReward(),
        outcome=OutcomeReward(),
        buffer=buffer,
        **more,
    ).run()
    return buffer


def on_policy(trainer: Trainer, *, tasks: int, group_size: int, **settings: Any) -> None:
    OnPolicy(trainer, Sizes(tasks, group_size), **settings).run()


def parameters(learner: Any) -> torch.Tensor:
    """All parameters of a policy, a critic, or a trainer's policy."""
    learner = learner.policy if isinstance(learner, Trainer) else learner
    return torch.cat([p.detach().flatten() for p in learner.model.parameters()])


def same_snapshot(one: Snapshot, other: Snapshot) -> bool:
    """Whether two snapshots are equal to the bit, in every tensor and number."""
    return (
        _same(one.model, other.model)
        and _same(one.masters, other.masters)
        and _same(one.optimizer, other.optimizer)
        and one.version == other.version
        and torch.equal(one.random_state, other.random_state)
    )


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[n], other[n]) for n in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def read_batches(learner: Any) -> list[Batch]:
    """The batches of all later optimizer steps of a policy or a critic, as they come."""
    seen: list[Batch] = []
    step = learner.step

    def watched(batch: Batch, *arguments: Any, **settings: Any) -> Metrics:
        seen.append(batch)
        found: Metrics = step(batch, *arguments, **settings)
        return found

    learner.step = watched
    return seen


class ChangedPlay(MadePlay):
    """Made-up episodes, each changed by a function."""

    def __init__(self, change: Callable[[Trajectory], Trajectory]) -> None:
        super().__init__()
        self.change = change

    def __call__(
        self, requests: Sequence[EpisodeRequest], seed: int, version: int, temperature: float | None
    ) -> Played:
        played = super().__call__(requests, seed, version, temperature)
        return replace(played, trajectories=[self.change(t) for t in played.trajectories])


def every_second_is_cut(trajectory: Trajectory) -> Trajectory:
    """Episodes of odd index ran into the turn limit."""
    return replace(trajectory, stop="turn_limit" if trajectory.index % 2 else "done")


def by_index(trajectory: Trajectory) -> Trajectory:
    """Every second episode of a task is a success."""
    return won(trajectory, trajectory.index % 2 == 0)


def won(trajectory: Trajectory, success: bool) -> Trajectory:
    return replace(trajectory, outcome=float(success), success=success)


def turn_per_row(trajectory: Trajectory) -> Trajectory:
    """The same shape with every turn in a row of its own."""
    return made_trajectory(
        trajectory.task.id,
        trajectory.index,
        [(len(t.context_ids), len(t.action_ids)) for t in trajectory.turns],
        trajectory.outcome,
        fresh_rows=range(len(trajectory.turns)),
        version=trajectory.policy_version,
    )
