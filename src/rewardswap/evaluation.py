"""Evaluation on a fixed panel: every task once, in a fixed order, the same for every policy."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from rewardswap.rollout.engine import SamplingParams
from rewardswap.statistics import Interval, mean_interval, wilson_interval
from rewardswap.types import Task, Trajectory


@dataclass(frozen=True)
class Panel:
    """The tasks of an evaluation."""

    split: str
    tasks: tuple[Task, ...]
    remarks: tuple[str, ...] = ()
    """What a reader of results on the split must know, a sentence each."""
    origin: str = "origin"
    """What a task's origin is called."""
    scored: bool = False
    """Whether the benchmark has a score of its own beside success."""

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


def assert_disjoint(
    training: Sequence[Task], panel: Panel, *, may_share_origins: bool = False
) -> None:
    """Raise ValueError if a task is trained on and evaluated on, or another one of its origin.

    `may_share_origins` is for splits that are known to do the latter.
    """
    _refuse_shared([task.id for task in training], [task.id for task in panel.tasks], panel, "are")
    if not may_share_origins:
        _refuse_shared(
            [task.origin for task in training if task.origin],
            [task.origin for task in panel.tasks if task.origin],
            panel,
            f"have a {panel.origin} of which other tasks are",
        )


def _refuse_shared(
    trained: Sequence[str], evaluated: Sequence[str], panel: Panel, what: str
) -> None:
    known = set(trained)
    shared = [name for name in evaluated if name in known]
    if shared:
        raise ValueError(
            f"{len(shared)} of {len(panel.tasks)} tasks of split {panel.split!r} {what} also "
            f"trained on, such as {min(shared)}; choose another `env.split` or `env.train_split`"
        )


@dataclass(frozen=True)
class Tally:
    """Success on some tasks, with its 95 % Wilson interval; failed episodes have score 0."""

    tasks: int
    success: float
    interval: Interval
    task_score: float
    """Mean of the benchmark's own score, in [0, 1]."""
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
            task_score=sum(trajectory.task_score for trajectory in trajectories) / tasks,
            mean_turns=len(turns) / max(1, len(trajectories)),
            invalid_action_rate=sum(not turn.valid for turn in turns) / max(1, len(turns)),
        )


@dataclass(frozen=True)
class OriginTally:
    """Success where every origin counts the same, however many tasks were made from it."""

    origins: int
    success: float
    """Mean over origins of the success on an origin's tasks."""
    interval: Interval | None
    """95 % interval of that mean, Student's t over origins, cut to [0, 1]; none for a single
    origin, or where all have the same success."""

    @staticmethod
    def of(successes: Sequence[float]) -> "OriginTally":
        """The tally of the success of each origin."""
        interval = mean_interval(successes)
        if interval is not None:
            interval = max(0.0, interval[0]), min(1.0, interval[1])
        return OriginTally(len(successes), fmean(successes), interval)


@dataclass(frozen=True)
class Evaluation:
    """What one policy did on the panel."""

    panel: Panel
    sampling: SamplingParams
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

    @property
    def origins(self) -> OriginTally | None:
        """Success per origin, failed episodes not won; none where no task has an origin.

        A task without one among others that have some is an origin of its own.
        """
        if not any(task.origin for task in self.panel.tasks):
            return None
        won: dict[str, list[float]] = {}
        for trajectory in self.trajectories:
            won.setdefault(_origin(trajectory.task), []).append(float(trajectory.success))
        for task in self.failures:
            won.setdefault(_origin(task), []).append(0.0)
        return OriginTally.of([fmean(won[origin]) for origin in sorted(won)])

    @property
    def is_scored(self) -> bool:
        """Whether the benchmark has a score of its own, or one differs from the outcome."""
        return self.panel.scored or any(t.task_score != t.outcome for t in self.trajectories)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What makes these numbers say little of how well the model plays, a sentence each.

        The bounds of a half are ours.
        """
        turns = [turn for trajectory in self.trajectories for turn in trajectory.turns]
        count, said = max(1, len(turns)), list[str]()
        cut = sum(turn.truncated for turn in turns) / count
        invalid = sum(not turn.valid for turn in turns) / count
        if cut >= 0.5:
            cap = self.sampling.max_tokens
            said.append(f"{cut:.0%} of the actions were cut at {cap} tokens: raise action_tokens.")
        if invalid >= 0.5:
            said.append(
                f"{invalid:.0%} of the actions were not valid: read some in the report; the model "
                "may not know the form of actions, or need supervised lessons first."
            )
        if not any(trajectory.success for trajectory in self.trajectories):
            said.append("No task was won: the outcome alone gives nothing to learn from.")
        return tuple(said)

    def as_dict(self) -> dict[str, Any]:
        """The record that is written into the run folder."""
        total, origins = asdict(self.total), self.origins
        del total["tasks"]
        return {
            "panel": {
                "split": self.panel.split,
                "tasks": len(self.panel.tasks),
                "hash": self.panel.hash,
                "remarks": list(self.panel.remarks),
            },
            "temperature": self.sampling.temperature,
            "top_p": self.sampling.top_p,
            "top_k": self.sampling.top_k,
            "min_p": self.sampling.min_p,
            "action_tokens": self.sampling.max_tokens,
            **total,
            "failed_episodes": len(self.failures),
            "per_origin": None
            if origins is None
            else {"origin": self.panel.origin, **asdict(origins)},
            "families": {name: asdict(tally) for name, tally in self.families.items()},
        }


def _origin(task: Task) -> str:
    return task.origin or task.id
