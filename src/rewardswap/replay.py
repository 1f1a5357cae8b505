"""The replay buffer of RSPO: groups of the explorer, drawn trajectory by trajectory."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch

from rewardswap.types import Group

Order = Literal["highest_outcome", "proportional", "variance", "uniform"]
Unit = Literal["trajectory", "group"]
Place = tuple[int, int]
"""Group and trajectory of the group, counted from 0."""


class Replay(ABC):
    """Whole groups are kept, single trajectories are selected, statistics stay the group's.

    Units: single trajectories, or whole groups in the order of their members' mean rank. Without
    replacement until the buffer is exhausted, then from the start again; `refills` counts this.
    `evicted` counts trajectories beyond the capacity.
    """

    def __init__(self, capacity: int, seed: int, unit: Unit = "trajectory") -> None:
        if capacity < 1:
            raise ValueError(f"replay capacity must be at least 1 trajectory, got {capacity}")
        self.capacity = capacity
        self.unit = unit
        self.seed = seed
        self.refills = 0
        self.evicted = 0
        self._groups: list[Group] = []
        self._places: list[Place] = []
        self._order: list[Place] = []
        self._cursor = 0
        self._fills = 0

    @abstractmethod
    def _key(self, place: Place, lot: float) -> tuple[float, ...]:
        """What a trajectory is ordered by: smaller comes first."""

    @abstractmethod
    def clear(self) -> None:
        """End a loop."""

    def __len__(self) -> int:
        return len(self._order)

    @property
    def groups(self) -> tuple[Group, ...]:
        """All groups, those that may be drawn selected in each."""
        return tuple(self._chosen(self._order))

    def add(self, groups: Sequence[Group]) -> None:
        """Keep labelled groups; the worst trajectories beyond the capacity are counted out."""
        first = len(self._groups)
        self._groups += [replace(group, replayed=True) for group in groups]
        for g, group in enumerate(self._groups[first:], first):
            self._places += [(g, n) for n in range(len(group.trajectories))]
        stream = np.random.default_rng([self.seed, self._fills])
        self._fills += 1
        keys = [(*self._key(place, float(stream.random())), *place) for place in self._places]
        order = [(int(g), int(n)) for *_, g, n in sorted(keys)]
        if self.unit == "group":
            order = _by_group(order)
        self.evicted += max(0, len(order) - self.capacity)
        self._order = order[: self.capacity]
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
        return self._chosen(drawn)

    def _chosen(self, drawn: Sequence[Place]) -> list[Group]:
        """The groups of some trajectories, with these selected."""
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

    def successes(self) -> int:
        """How many of the trajectories that may be drawn are successes."""
        return sum(self._groups[g].trajectories[n].success for g, n in self._order)

    def success_share(self) -> float:
        """Share of successes among the trajectories that may be drawn; 0 when empty."""
        if not self._order:
            return 0.0
        wins = [self._groups[g].trajectories[n].success for g, n in self._order]
        return float(torch.tensor(wins).float().mean())

    def state(self) -> dict[str, Any]:
        """Everything but the groups, as plain JSON values."""
        return {
            "places": [list(place) for place in self._places],
            "order": [list(place) for place in self._order],
            "cursor": self._cursor,
            "fills": self._fills,
            "refills": self.refills,
            "evicted": self.evicted,
        }

    def stored(self) -> list[Group]:
        """The groups that `state` speaks of, whole, in its order."""
        return list(self._groups)

    def restore(self, state: Mapping[str, Any], groups: Sequence[Group]) -> None:
        """Go on from a `state` and its `stored` groups."""
        self._groups = list(groups)
        self._places = [(g, n) for g, n in state["places"]]
        self._order = [(g, n) for g, n in state["order"]]
        self._cursor, self._fills = state["cursor"], state["fills"]
        self.refills, self.evicted = state["refills"], state["evicted"]


class ReplayBuffer(Replay):
    """The buffer that lives for one loop (arXiv:2607.04713).

    Orders: `highest_outcome` (the paper: best outcome first), ties by larger advantage inside the
    group (more for a success of a group that mostly fails), then by seeded lot; `proportional`,
    drawn with chances proportional to the outcome, trajectories of outcome 0 last; `variance`, of
    the outcomes of the trajectory's group; `uniform`. The tie rule and the exact meaning of the
    last three are ours.
    """

    def __init__(
        self, capacity: int, seed: int, by: Order = "highest_outcome", unit: Unit = "trajectory"
    ) -> None:
        super().__init__(capacity, seed, unit)
        self.by = by

    def _key(self, place: Place, lot: float) -> tuple[float, ...]:
        g, n = place
        outcomes = self._groups[g].outcomes.double()
        if self.by == "uniform":
            return (lot,)
        if self.by == "variance":
            return (-float(outcomes.std(correction=0)), lot)
        if self.by == "proportional":  # Efraimidis and Spirakis: the order of weighted draws
            weight = float(outcomes[n])
            return (-math.log(lot) / weight if weight > 0 else math.inf, lot)
        return (-float(outcomes[n]), -lead(self._groups[g], n), lot)

    def clear(self) -> None:
        """Forget everything: the buffer lives for one loop."""
        self._groups, self._places, self._order, self._cursor = [], [], [], 0


def lead(group: Group, n: int) -> float:
    """Trajectory n's outcome as a z-score among its siblings; 0 where they do not differ."""
    outcomes = group.outcomes.double()
    deviation = float(outcomes.std(correction=0))
    return float(outcomes[n] - outcomes.mean()) / deviation if deviation > 0 else 0.0


def _by_group(order: Sequence[Place]) -> list[Place]:
    """The same trajectories, the groups in the order of their members' mean rank."""
    ranks: dict[int, list[int]] = {}
    members: dict[int, list[int]] = {}
    for rank, (g, n) in enumerate(order):
        ranks.setdefault(g, []).append(rank)
        members.setdefault(g, []).append(n)
    best = sorted(ranks, key=lambda g: sum(ranks[g]) / len(ranks[g]))
    return [(g, n) for g in best for n in sorted(members[g])]
