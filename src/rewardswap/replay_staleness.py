"""A replay buffer that outlives the loop: what is old weighs less, and what is too old goes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rewardswap.replay import Place, Replay, Unit, lead
from rewardswap.types import Group


@dataclass(frozen=True)
class Staleness:
    """How replayed trajectories age, in loops (beyond the paper, which empties the buffer)."""

    tau: float = 2.0
    """Loops after which the priority has fallen to 1/e (ours); 0: the paper's reset."""
    beta: float = 1.0
    """Exponent of the outcome in the priority (ours); 0: age alone."""
    oldest: int = 8
    """Largest age of a trajectory, in loops (ours); older ones are evicted."""

    def __post_init__(self) -> None:
        if not (0 <= self.tau < math.inf):
            raise ValueError(f"tau must be at least 0 loops and finite, got {self.tau}")
        if not (0 <= self.beta < math.inf):
            raise ValueError(f"beta must be at least 0 and finite, got {self.beta}")
        if self.oldest < 0:
            raise ValueError(f"oldest must be at least 0 loops, got {self.oldest}")

    def freshness(self, age: int) -> float:
        """exp(-age / tau), its limit at tau = 0."""
        return math.exp(-age / self.tau) if self.tau else float(age == 0)

    def priority(self, outcome: float, age: int) -> float:
        """R^beta exp(-age / tau)."""
        return float(outcome**self.beta) * self.freshness(age)


class StalenessReplay(Replay):
    """Draws by larger R^beta exp(-age / tau), age in loops since the harvest.

    Ties: the younger one, then the larger advantage inside its group, then seeded lot (ours).
    Trajectories older than `oldest`, or whose exp(-age / tau) is 0 in floating point, are counted
    in `expired`; those beyond the capacity in `evicted`. A group stays whole, for its statistics,
    while one of its trajectories may be drawn. With tau = 0 all of this is the paper's buffer, to
    the last draw.
    """

    def __init__(
        self, capacity: int, seed: int, staleness: Staleness, unit: Unit = "trajectory"
    ) -> None:
        super().__init__(capacity, seed, unit)
        self.staleness = staleness
        self.expired = 0
        self._ages: list[int] = []

    def add(self, groups: Sequence[Group]) -> None:
        """Keep labelled groups of age 0 beside the older ones, and order them all anew."""
        self._ages += [0] * len(groups)
        super().add(groups)

    def _key(self, place: Place, lot: float) -> tuple[float, ...]:
        g, n = place
        group, age = self._groups[g], self._ages[g]
        priority = self.staleness.priority(float(group.outcomes.double()[n]), age)
        return (-priority, float(age), -lead(group, n), lot)

    def clear(self) -> None:
        """Age by one loop: what is too old goes, and what the capacity left out is forgotten."""
        ages = [age + 1 for age in self._ages]
        young = [age <= self.staleness.oldest and self.staleness.freshness(age) > 0 for age in ages]
        order = [place for place in self._order if young[place[0]]]
        self.expired += len(self._order) - len(order)
        kept = {old: new for new, old in enumerate(sorted({g for g, _ in order}))}
        self._groups = [self._groups[g] for g in kept]
        self._ages = [ages[g] for g in kept]
        self._order = [(kept[g], n) for g, n in order]
        self._places = sorted(self._order)
        self._cursor = 0

    def mean_age(self) -> float:
        """Mean age of the trajectories that may be drawn, in loops; 0 when empty."""
        return sum(self._ages[g] for g, _ in self._order) / max(1, len(self._order))

    def state(self) -> dict[str, Any]:
        """Everything but the groups, as plain JSON values."""
        return {**super().state(), "ages": list(self._ages), "expired": self.expired}

    def restore(self, state: Mapping[str, Any], groups: Sequence[Group]) -> None:
        """Go on from a `state` and its `stored` groups."""
        super().restore(state, groups)
        self._ages, self.expired = list(state["ages"]), state["expired"]
