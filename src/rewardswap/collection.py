"""What a collection of episodes is: groups, and what can be counted about them."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from rewardswap.models.learner import Metrics
from rewardswap.rollout.episodes import EpisodeRequest
from rewardswap.types import Group, Task, Trajectory


@dataclass(frozen=True)
class Collected:
    """The groups of one or more collections under one policy."""

    groups: list[Group]
    counters: Metrics
    """How often each thing happened in the rollouts, and their seconds."""
    group_size: int
    episodes: Counter[str] = field(default_factory=Counter)
    """How many episodes of each task were asked for: further ones get further indices."""
    temperature: float | None = None
    """Sampling temperature; none: the policy's own."""
    version: int = 0
    """Version of the policy that sampled."""

    def metrics(self) -> Metrics:
        """What the record of an update says of its rollouts."""
        counted = {f"rollout/{n}": v for n, v in self.counters.items() if n != "seconds"}
        return {
            **rollout_metrics(self.groups),
            **counted,
            "rollout_seconds": self.counters["seconds"],
        }

    def joined(self, other: "Collected") -> "Collected":
        """Both collections as one."""
        names = [*self.counters, *(name for name in other.counters if name not in self.counters)]
        counters = {n: self.counters.get(n, 0.0) + other.counters.get(n, 0.0) for n in names}
        return Collected(
            self.groups + other.groups,
            counters,
            self.group_size,
            self.episodes + other.episodes,
            self.temperature,
            self.version,
        )


@dataclass(frozen=True)
class Begun:
    """A collection that is played in the background."""

    episodes: Counter[str]
    """How many episodes of each task were asked for."""
    take: Callable[[], Collected]
    """Waits for its end."""


def episode_requests(
    tasks: Sequence[Task], group_size: int, before: Counter[str] | None = None
) -> list[EpisodeRequest]:
    """`group_size` episodes of each task; a task that is named twice gets further indices."""
    seen = Counter(before or {})
    requests: list[EpisodeRequest] = []
    for task in tasks:
        first = seen[task.id]
        requests += [EpisodeRequest(task, first + n) for n in range(group_size)]
        seen[task.id] += group_size
    return requests


def grouped(
    requests: Sequence[EpisodeRequest], group_size: int, trajectories: Sequence[Trajectory]
) -> list[Group]:
    """Groups in the order of the requests; failed episodes are missing, groups of fewer than 2 go.

    Every `group_size` consecutive requests are a group; groups of one are asked for by size 1.
    """
    played = {(t.task.id, t.index): t for t in trajectories}
    groups: list[Group] = []
    for start in range(0, len(requests), group_size):
        asked = requests[start : start + group_size]
        found = [played.get((request.task.id, request.index)) for request in asked]
        members = tuple(trajectory for trajectory in found if trajectory is not None)
        if len(members) >= min(2, group_size):
            groups.append(Group(asked[0].task, members))
    return groups


def rollout_metrics(groups: Sequence[Group]) -> Metrics:
    """Success, lengths and shares of the trajectories of some groups."""
    trajectories = [t for group in groups for t in group.trajectories]
    turns = [turn for t in trajectories for turn in t.turns]
    count, turn_count = max(1, len(trajectories)), max(1, len(turns))
    mixed = sum(len({t.outcome for t in g.trajectories}) > 1 for g in groups)
    return {
        "success": sum(t.success for t in trajectories) / count,
        "outcome_mean": sum(t.outcome for t in trajectories) / count,
        "task_score_mean": sum(t.task_score for t in trajectories) / count,
        "turns_mean": len(turns) / count,
        "invalid_rate": sum(not turn.valid for turn in turns) / turn_count,
        "truncated_rate": sum(turn.truncated for turn in turns) / turn_count,
        "informative_groups": mixed / max(1, len(groups)),
    }


def mean_return(groups: Sequence[Group]) -> float:
    """Mean over all trajectories of the summed reward in force; 0 without any."""
    return float(torch.cat([group.returns.float() for group in groups]).mean()) if groups else 0.0
