"""The replay buffer of RSPO: groups of the explorer, drawn trajectory by trajectory."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch

from rewardswap.types import Group

Priority = Callable[[Group, int], float]
"""Larger comes first: a number for trajectory n of a group that is labelled with the outcome."""


def highest_outcome(group: Group, n: int) -> float:
    """The true outcome of the trajectory (arXiv:2607.04713: best outcome first)."""
    return group.trajectories[n].outcome


class ReplayBuffer:
    """Whole groups are kept, single trajectories are selected, statistics stay the group's.

    Order: descending priority; ties by larger advantage inside the group (more for a success of a
    group that mostly fails), then by seeded lot. Without replacement until the buffer is
    exhausted, then from the start again; `refills` counts this. The tie rule is ours: outcomes of
    0 and 1 tie nearly always.
    """

    def __init__(self, capacity: int, seed: int, priority: Priority = highest_outcome) -> None:
        if capacity < 1:
            raise ValueError(f"replay capacity must be at least 1 trajectory, got {capacity}")
        self.capacity = capacity
        self.priority = priority
        self.seed = seed
        self.refills = 0
        self.evicted = 0
        self._groups: list[Group] = []
        self._order: list[tuple[int, int]] = []
        self._cursor = 0
        self._fills = 0

    def __len__(self) -> int:
        return len(self._order)

    def add(self, groups: Sequence[Group]) -> None:
        """Keep labelled groups; the worst trajectories beyond the capacity are counted out."""
        self._groups += [replace(group, replayed=True) for group in groups]
        stream = np.random.default_rng([self.seed, self._fills])
        self._fills += 1
        keys: list[tuple[float, float, float, int, int]] = []
        for g, group in enumerate(self._groups):
            centered = group.outcomes - group.outcomes.mean()
            deviation = float(group.outcomes.std(correction=0))
            for n in range(len(group.trajectories)):
                lead = float(centered[n]) / deviation if deviation > 0 else 0.0
                lot = float(stream.random())
                keys.append((-self.priority(group, n), -lead, lot, g, n))
        keys.sort()
        self.evicted += max(0, len(keys) - self.capacity)
        self._order = [(g, n) for *_, g, n in keys[: self.capacity]]
        self._cursor = 0

    def sample(self, count: int) -> list[Group]:
        """The next `count` trajectories in order, as groups with these selected.

        Raises ValueError if the buffer is empty or `count` is larger than it.
        """
        if count > len(self._order):
            raise ValueError(
                f"the replay buffer holds {len(self._order)} trajectories, {count} were asked for"
            )
        drawn = self._order[self._cursor : self._cursor + count]
        self._cursor += count
        if len(drawn) < count:
            self._cursor = count - len(drawn)
            drawn = drawn + self._order[: self._cursor]
            self.refills += 1
        chosen: dict[int, set[int]] = {}
        for g, n in drawn:
            chosen.setdefault(g, set()).add(n)
        return [
            replace(
                self._groups[g],
                selected=tuple(n in members for n in range(len(self._groups[g].trajectories))),
            )
            for g, members in sorted(chosen.items())
        ]

    def success_share(self) -> float:
        """Share of successes among the trajectories that may be drawn; 0 when empty."""
        if not self._order:
            return 0.0
        wins = [self._groups[g].trajectories[n].success for g, n in self._order]
        return float(torch.tensor(wins).float().mean())

    def clear(self) -> None:
        """Forget everything: the buffer lives for one loop."""
        self._groups, self._order, self._cursor = [], [], 0
