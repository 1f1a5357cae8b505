"""The replay buffer of RSPO: groups of the explorer, drawn trajectory by trajectory."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import torch

from rewardswap.types import Group

Order = Literal["highest_outcome", "proportional", "variance", "uniform"]
Unit = Literal["trajectory", "group"]


class ReplayBuffer:
    """Whole groups are kept, single trajectories are selected, statistics stay the group's.

    Orders: `highest_outcome` (arXiv:2607.04713: best outcome first), ties by larger advantage
    inside the group (more for a success of a group that mostly fails), then by seeded lot;
    `proportional`, drawn with chances proportional to the outcome, trajectories of outcome 0 last;
    `variance`, of the outcomes of the trajectory's group; `uniform`. The tie rule and the exact
    meaning of the last three are ours. Units: single trajectories, or whole groups in the order of
    their members' mean rank. Without replacement until the buffer is exhausted, then from the start
    again; `refills` counts this.
    """

    def __init__(
        self, capacity: int, seed: int, by: Order = "highest_outcome", unit: Unit = "trajectory"
    ) -> None:
        if capacity < 1:
            raise ValueError(f"replay capacity must be at least 1 trajectory, got {capacity}")
        self.capacity = capacity
        self.by = by
        self.unit = unit
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
        keys: list[tuple[float, ...]] = []
        for g, group in enumerate(self._groups):
            for n in range(len(group.trajectories)):
                keys.append((*self._key(group, n, float(stream.random())), g, n))
        order = [(int(g), int(n)) for *_, g, n in sorted(keys)]
        if self.unit == "group":
            order = self._by_group(order)
        self.evicted += max(0, len(order) - self.capacity)
        self._order = order[: self.capacity]
        self._cursor = 0

    def _key(self, group: Group, n: int, lot: float) -> tuple[float, ...]:
        """Smaller comes first."""
        outcomes = group.outcomes.double()
        deviation = float(outcomes.std(correction=0))
        if self.by == "uniform":
            return (lot,)
        if self.by == "variance":
            return (-deviation, lot)
        if self.by == "proportional":  # Efraimidis and Spirakis: the order of weighted draws
            weight = float(outcomes[n])
            return (-math.log(lot) / weight if weight > 0 else math.inf, lot)
        lead = float(outcomes[n] - outcomes.mean()) / deviation if deviation > 0 else 0.0
        return (-float(outcomes[n]), -lead, lot)

    def _by_group(self, order: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        ranks: dict[int, list[int]] = {}
        for rank, (g, _) in enumerate(order):
            ranks.setdefault(g, []).append(rank)
        best = sorted(ranks, key=lambda g: sum(ranks[g]) / len(ranks[g]))
        return [(g, n) for g in best for n in range(len(ranks[g]))]

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
