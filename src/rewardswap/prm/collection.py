"""Rollouts that a process reward model is fitted on: whole groups of a task, at several shares.

A *share* is a policy at a temperature; all shares have the same number of groups.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from rewardswap.collection import episode_requests
from rewardswap.collector import Play
from rewardswap.rollout.episodes import EpisodeRequest
from rewardswap.task_stream import TaskStream, derived_seed
from rewardswap.types import Task, Trajectory

ROUND = 4
"""Further groups come this many times fewer at once than a share keeps (ours)."""


@dataclass(frozen=True)
class Balance:
    """Until when further tasks are drawn for a share (ours)."""

    least_share: float
    """Successes and failures each are at least this part of the trajectories that are kept."""
    most_groups: int
    """Groups that a share plays at most, in groups; what it keeps counts."""


@dataclass
class Share:
    """What one policy did at one temperature: the groups that are kept, and what was not."""

    kept: list[list[Trajectory]]
    left_out: list[list[Trajectory]] = field(default_factory=list)
    failed_episodes: int = 0

    @property
    def trajectories(self) -> list[Trajectory]:
        """The trajectories that are kept, group after group."""
        return [trajectory for group in self.kept for trajectory in group]

    def rarer(self) -> tuple[bool, float]:
        """The rarer kind, true for success, and its part of the trajectories that are kept."""
        kept = self.trajectories
        wins = sum(trajectory.success for trajectory in kept)
        count = min(wins, len(kept) - wins)
        return count == wins, count / max(1, len(kept))


class ShareStream:
    """Shares one after the other, each on the next tasks of one seeded order.

    The same seed gives the same bits; the numbers of shares, not their policies, seed the tokens.
    """

    def __init__(self, tasks: Sequence[Task], seed: int, groups: int, group_size: int) -> None:
        self.stream = TaskStream(tasks, seed)
        self.seed, self.groups, self.group_size = seed, groups, group_size
        self.number = 0

    def next(self, play: Play, temperature: float, balance: Balance | None = None) -> Share:
        """Play the next share; with `balance`, go on until it holds or its budget is spent.

        A further group then takes the place of the first kept one that has fewer of the rarer kind.
        """
        seed, self.number = derived_seed(self.seed, self.number), self.number + 1
        asked: Counter[str] = Counter()
        share = Share([])

        def played(count: int) -> list[list[Trajectory]]:
            requests = episode_requests(self.stream.draw(count), self.group_size, asked)
            asked.update(request.task.id for request in requests)
            played = play(requests, seed, 0, temperature)
            share.failed_episodes += len(played.failures)
            return _groups(requests, self.group_size, played.trajectories)

        share.kept += played(self.groups)
        spent = self.groups
        while balance and share.rarer()[1] < balance.least_share and spent < balance.most_groups:
            count = min(max(1, self.groups // ROUND), balance.most_groups - spent)
            for group in played(count):
                _offer(group, share, self.groups, balance.least_share)
            spent += count
        return share


def _groups(
    requests: Sequence[EpisodeRequest], size: int, trajectories: Sequence[Trajectory]
) -> list[list[Trajectory]]:
    """Trajectories by the groups that were asked for, `size` requests each; empty ones go."""
    found = {(t.task.id, t.index): t for t in trajectories}
    keys = [(request.task.id, request.index) for request in requests]
    groups = [
        [found[key] for key in keys[start : start + size] if key in found]
        for start in range(0, len(keys), size)
    ]
    return [group for group in groups if group]


def _offer(group: list[Trajectory], share: Share, groups: int, least_share: float) -> None:
    """Keep a further group where one is missing, or where it mends the balance."""
    if len(share.kept) < groups:
        share.kept.append(group)
        return
    kind, part = share.rarer()

    def count(members: list[Trajectory]) -> int:
        return sum(trajectory.success == kind for trajectory in members)

    place = next((n for n, kept in enumerate(share.kept) if count(kept) < count(group)), None)
    if part >= least_share or place is None:
        share.left_out.append(group)
        return
    share.left_out.append(share.kept[place])
    share.kept[place] = group


def collect_for_reward(
    play: Play,
    tasks: Sequence[Task],
    *,
    seed: int,
    trajectories: int,
    group_size: int,
    temperatures: Sequence[float],
) -> list[Trajectory]:
    """Rollouts of one policy at several temperatures, whole groups of a task at each."""
    groups = max(1, trajectories // (group_size * len(temperatures)))
    stream = ShareStream(tasks, seed, groups, group_size)
    shares = [stream.next(play, temperature) for temperature in temperatures]
    return [trajectory for share in shares for trajectory in share.trajectories]
