"""Evaluation on a fixed panel: every task once, in a fixed order, the same for every policy."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rewardswap.statistics import wilson_interval
from rewardswap.types import Task, Trajectory


@dataclass(frozen=True)
class Panel:
    """The tasks of an evaluation."""

    split: str
    tasks: tuple[Task, ...]

    def __post_init__(self) -> None:
        if not self.tasks:
            raise ValueError(f"the evaluation panel of split {self.split!r} is empty")
        if len({task.id for task in self.tasks}) != len(self.tasks):
            raise ValueError(f"the evaluation panel of split {self.split!r} holds a task twice")

    @property
    def hash(self) -> str:
        """Content hash of the panel: 16 hexadecimal digits over its task ids in order."""
        joined = "\n".join(task.id for task in self.tasks)
        return hashlib.sha256(joined.encode()).hexdigest()[:16]


def assert_disjoint(training: Sequence[Task], panel: Panel) -> None:
    """Raise ValueError if a task is trained on and evaluated on."""
    shared = {task.id for task in training} & {task.id for task in panel.tasks}
    if shared:
        raise ValueError(
            f"{len(shared)} of {len(panel.tasks)} tasks of split {panel.split!r} are also trained "
            f"on, such as {min(shared)}; choose another `env.split` or `env.train_split`"
        )


@dataclass(frozen=True)
class Tally:
    """Success on some tasks, with its 95 % Wilson interval."""

    tasks: int
    success: float
    interval: tuple[float, float]
    mean_turns: float
    invalid_action_rate: float

    @staticmethod
    def of(trajectories: Sequence[Trajectory], failed: int) -> "Tally":
        """Failed episodes count as tasks that were not won."""
        tasks = len(trajectories) + failed
        wins = sum(trajectory.success for trajectory in trajectories)
        turns = [turn for trajectory in trajectories for turn in trajectory.turns]
        return Tally(
            tasks=tasks,
            success=wins / tasks,
            interval=wilson_interval(wins, tasks),
            mean_turns=len(turns) / max(1, len(trajectories)),
            invalid_action_rate=sum(not turn.valid for turn in turns) / max(1, len(turns)),
        )


@dataclass(frozen=True)
class Evaluation:
    """What one policy did on the panel."""

    panel: Panel
    temperature: float
    trajectories: tuple[Trajectory, ...]
    failures: tuple[Task, ...]

    @property
    def total(self) -> Tally:
        """All tasks."""
        return Tally.of(self.trajectories, len(self.failures))

    @property
    def families(self) -> dict[str, Tally]:
        """Tasks by the benchmark's kind of task."""
        names = sorted({task.family for task in self.panel.tasks})
        return {
            name: Tally.of(
                [t for t in self.trajectories if t.task.family == name],
                sum(task.family == name for task in self.failures),
            )
            for name in names
        }

    def as_dict(self) -> dict[str, Any]:
        """The record that is written into the run folder."""
        total = self.total
        return {
            "panel": {
                "split": self.panel.split,
                "tasks": len(self.panel.tasks),
                "hash": self.panel.hash,
            },
            "temperature": self.temperature,
            "success": total.success,
            "interval": list(total.interval),
            "mean_turns": total.mean_turns,
            "invalid_action_rate": total.invalid_action_rate,
            "failed_episodes": len(self.failures),
            "families": {
                name: {
                    "tasks": tally.tasks,
                    "success": tally.success,
                    "interval": list(tally.interval),
                    "mean_turns": tally.mean_turns,
                    "invalid_action_rate": tally.invalid_action_rate,
                }
                for name, tally in self.families.items()
            },
        }
