"""A process reward judged on rollouts of tasks that it has not seen."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from rewardswap.prm.store import task_hashes
from rewardswap.rewards.base import RewardSource
from rewardswap.rewards.checked import label
from rewardswap.rewards.probes import probe
from rewardswap.rewards.process import ProcessRewardModel
from rewardswap.rewards.quality import ProcessRewardQuality, judge
from rewardswap.types import Group, Trajectory

Rewards = Callable[[Sequence[Trajectory]], list[list[float]]]
"""One number per turn of each trajectory."""


@dataclass(frozen=True)
class Judged:
    """The quality of a process reward, and on what it was judged."""

    quality: ProcessRewardQuality
    tasks: int
    """Tasks of the collection, those that it was trained on with them."""
    seen: int | None
    """How many of them it was trained on, which were left out; none where it is not known."""
    left_out: int
    """Trajectories of these tasks."""

    @property
    def remark(self) -> str:
        """On what the quality was judged, in words."""
        if self.seen is None:
            return (
                f"It is not recorded which tasks the model was trained on: some of these "
                f"{self.tasks} may be among them, and then it looks better than it is."
            )
        if not self.seen:
            return f"trained on none of these {self.tasks} tasks"
        return (
            f"trained on {self.seen} of these {self.tasks} tasks; their {self.left_out} rollouts "
            "are left out"
        )

    def as_dict(self) -> dict[str, Any]:
        """All numbers, ready for JSON."""
        return {
            "tasks": self.tasks,
            "tasks_trained_on": self.seen,
            "rollouts_left_out": self.left_out,
            **self.quality.as_dict(),
        }

    def show(self, console: Console) -> None:
        """Print what it was judged on, the tables, and the warning."""
        console.print(self.remark, highlight=False, markup=False)
        show(self.quality, self.quality.tables(), console)


def show(quality: ProcessRewardQuality, tables: Sequence[Table], console: Console) -> None:
    """Print some tables of a quality, and its warning once."""
    for table in tables:
        table.caption = None if table.caption == quality.warning else table.caption
        console.print(table)
    if quality.warning:
        console.print(f"[yellow]warning:[/] {quality.warning}", highlight=False)


def judge_rewards(
    rewards: Rewards, trajectories: Sequence[Trajectory], seen: frozenset[str] | None
) -> Judged:
    """Judge and probe rewards on the trajectories of tasks whose hashes are not in `seen`.

    `seen` is none where it is not known. Raises ValueError where no trajectory is left.
    """
    names = {t.task.id: task_hashes([t.task.id])[0] for t in trajectories}
    known = {task for task, name in names.items() if name in (seen or ())}
    kept = [t for t in trajectories if t.task.id not in known]
    if not kept:
        raise ValueError(
            f"the model was trained on all {len(names)} tasks of the collection; collect others, "
            "with another --seed"
        )
    return Judged(
        quality=judge(kept, rewards(kept)).with_probes(probe(rewards, kept)),
        tasks=len(names),
        seen=None if seen is None else len(known),
        left_out=len(trajectories) - len(kept),
    )


def rewards_of(source: RewardSource) -> Rewards:
    """What a source says of each turn; the function raises ValueError naming a task it fails on.

    A model reads many trajectories in a pass; any other source gets them one by one.
    """
    if isinstance(source, ProcessRewardModel):
        return lambda trajectories: [row.tolist() for row in source.rewards(trajectories)]

    def one_by_one(trajectories: Sequence[Trajectory]) -> list[list[float]]:
        groups = [Group(trajectory.task, (trajectory,)) for trajectory in trajectories]
        return [label(group, source).rewards[source.name][0].tolist() for group in groups]

    return one_by_one
