"""How a process reward reads trajectories that were changed: does it notice, and does it pay?"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import SupportsFloat

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from rewardswap.rewards.changes import CHANGES, PADDING, changed
from rewardswap.shown import slim_table
from rewardswap.types import Trajectory

Rewards = Callable[[Sequence[Trajectory]], Sequence[Iterable[SupportsFloat]]]
"""Anything that gives one number per turn of each trajectory."""

SMALL = 0.1
"""A change of R_hat up to this share of its deviation between trajectories is none (ours)."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What one change of trajectories does to R_hat."""

    change: str
    successes: int
    """Successes that could be changed."""
    failures: int
    """Failures that could be changed."""
    unchangeable: int
    """Trajectories that could not be changed, and do not count."""
    mean_successes: float | None
    """Mean change of R_hat of successes; None without any."""
    mean_failures: float | None
    """Mean change of R_hat of failures; None without any."""
    mean: float | None
    """Mean change of R_hat; None where no trajectory could be changed."""
    mean_size: float | None
    """Mean size of the change of R_hat, whatever its sign."""
    rising_share: float | None
    """Share of trajectories whose R_hat rises."""


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """What changes of trajectories do to R_hat, and what is wrong with that."""

    probes: tuple[Probe, ...]
    deviation: float
    """Standard deviation of R_hat between the unchanged trajectories."""

    def of(self, change: str) -> Probe:
        """The probe of a change of `CHANGES`; raises ValueError for another name."""
        for probe in self.probes:
            if probe.change == change:
                return probe
        raise ValueError(f"no probe {change!r}; there are {[p.change for p in self.probes]}")

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is wrong, a sentence each; empty when nothing is seen."""
        return tuple(self._warnings())

    def _warnings(self) -> Iterator[str]:
        padded, repeated, shuffled = (self.of(c) for c in ("padded", "repeated", "shuffled"))
        if self._pays_for(padded):
            yield (
                f"It pays for padding: {PADDING} more turns that change nothing raise R_hat by "
                f"{padded.mean:.3f} in the mean, and in {padded.rising_share:.0%} of the episodes."
            )
        if self._pays_for(repeated):
            yield (
                f"It pays for repetition: a turn told twice raises R_hat by {repeated.mean:.3f} in "
                f"the mean, and in {repeated.rising_share:.0%} of the episodes."
            )
        if shuffled.mean_size is not None and shuffled.mean_size <= SMALL * self.deviation:
            yield (
                f"It does not notice order: shuffled turns change R_hat by {shuffled.mean_size:.3f}"
                f" in the mean, and between episodes it deviates by {self.deviation:.3f}."
            )

    def _pays_for(self, probe: Probe) -> bool:
        if probe.mean is None or probe.rising_share is None:
            return False
        return probe.mean > SMALL * self.deviation and probe.rising_share > 0.5

    def table(self) -> Table:
        """The numbers for people."""
        table = slim_table(
            title="how changed episodes are read: mean change of R_hat",
            caption=" ".join(self.warnings)
            or f"R_hat deviates by {self.deviation:.3f} between unchanged episodes",
        )
        names = ("episodes", "not changed", "successes", "failures", "all", "R_hat rises in")
        table.add_column("change", no_wrap=True)
        for name in names:
            table.add_column(name, justify="right")
        for probe in self.probes:
            means = (probe.mean_successes, probe.mean_failures, probe.mean)
            table.add_row(
                probe.change,
                str(probe.successes + probe.failures),
                str(probe.unchangeable),
                *("-" if mean is None else f"{mean:+.3f}" for mean in means),
                "-" if probe.rising_share is None else f"{probe.rising_share:.0%}",
            )
        return table


def probe(rewards: Rewards, trajectories: Sequence[Trajectory], *, seed: int = 0) -> ProbeReport:
    """How R_hat, the sum of `rewards`, changes with every change of `CHANGES`.

    `rewards` is `ProcessRewardModel.rewards` or any function like it; the trajectories should be
    held out from it. What is drawn for a trajectory belongs to (seed, change, task, episode).
    Raises ValueError for no trajectories.
    """
    if not trajectories:
        raise ValueError("no held-out trajectories to probe a process reward with")
    plain = _totals(rewards, trajectories)
    found = tuple(_probe(name, rewards, trajectories, plain, seed) for name in CHANGES)
    return ProbeReport(found, float(plain.std()))


def _probe(
    name: str,
    rewards: Rewards,
    trajectories: Sequence[Trajectory],
    plain: NDArray[np.float64],
    seed: int,
) -> Probe:
    told = [changed(t, CHANGES[name], _generator(seed, name, t)) for t in trajectories]
    rows = [n for n, trajectory in enumerate(told) if trajectory is not None]
    some = [trajectory for trajectory in told if trajectory is not None]
    gain = (_totals(rewards, some) if some else np.zeros(0)) - plain[rows]
    won = np.array([trajectory.success for trajectory in some], dtype=bool)
    return Probe(
        change=name,
        successes=int(won.sum()),
        failures=int((~won).sum()),
        unchangeable=len(told) - len(some),
        mean_successes=_mean(gain[won]),
        mean_failures=_mean(gain[~won]),
        mean=_mean(gain),
        mean_size=_mean(np.abs(gain)),
        rising_share=_mean(gain > 0),
    )


def _totals(rewards: Rewards, trajectories: Sequence[Trajectory]) -> NDArray[np.float64]:
    return np.array([np.sum([float(r) for r in row]) for row in rewards(trajectories)])


def _mean(values: NDArray[np.float64] | NDArray[np.bool_]) -> float | None:
    return float(values.mean()) if len(values) else None


def _generator(seed: int, change: str, trajectory: Trajectory) -> np.random.Generator:
    key = f"{seed} {change} {trajectory.task.id} {trajectory.index}"
    stream = int.from_bytes(hashlib.sha256(key.encode()).digest()[:16], "little")
    return np.random.Generator(np.random.Philox(key=stream))
