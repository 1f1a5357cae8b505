"""Estimates over seeds: means, interquartile means, chances of improvement, and verdicts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import trim_mean

from rewardswap.report.tables import Estimate as ReportedEstimate
from rewardswap.statistics import Interval, mean_interval

Floats = NDArray[np.float64]

RESAMPLES = 10_000
"""Draws of a bootstrap."""
ENDS = (0.025, 0.975)
"""Quantiles of the resamples that are the ends of a 95 % interval."""
Direction = Literal["higher", "lower"]
Verdict = Literal["agrees", "disagrees", "undecided"]


@dataclass(frozen=True)
class Estimate(ReportedEstimate):
    """A number with its 95 % interval where one is known, and from how many seeds it is."""

    seeds: int


def over_seeds(values: Sequence[float]) -> Estimate:
    """The mean over seeds with Student's t interval; none below 2 seeds or where all are equal.

    Raises ValueError without a value.
    """
    if not values:
        raise ValueError("a mean over seeds needs at least one seed, got none")
    return Estimate(fmean(values), mean_interval(values), len(values))


def share_over_seeds(values: Sequence[float]) -> Estimate:
    """`over_seeds` of shares: the interval is cut to [0, 1]."""
    found = over_seeds(values)
    if found.interval is None:
        return found
    return replace(found, interval=(max(0.0, found.interval[0]), min(1.0, found.interval[1])))


def interquartile_mean(scores: Floats) -> Estimate:
    """Mean of the middle half of scores [seeds, types], with the stratified bootstrap interval.

    Agarwal et al. 2021 (arXiv:2108.13264): seeds are drawn anew inside each type. There the runs of
    a cell are independent; here all types of a seed are one policy, so that what a seed does to all
    of its types is not drawn together and the interval is too narrow. None below 2 seeds.
    """
    value = float(trim_mean(scores.ravel(), 0.25))
    if len(scores) < 2:
        return Estimate(value, None, len(scores))
    drawn = _redrawn(scores, generator())
    means = trim_mean(drawn.reshape(RESAMPLES, -1), 0.25, axis=1)
    return Estimate(value, _percentiles(means), len(scores))


def improvement(arm: Floats, baseline: Floats) -> Estimate:
    """Chance that a run of the arm beats one of the baseline, ties half; mean over types.

    Scores are [seeds, types], any two seeds are compared (Agarwal et al. 2021); interval by the
    stratified bootstrap, with the reserve of `interquartile_mean`. None below 2 seeds.
    """
    value = float(_wins(arm[None], baseline[None])[0])
    seeds = min(len(arm), len(baseline))
    if seeds < 2:
        return Estimate(value, None, seeds)
    rng = generator()
    wins = _wins(_redrawn(arm, rng), _redrawn(baseline, rng))
    return Estimate(value, _percentiles(wins), seeds)


def _redrawn(scores: Floats, rng: np.random.Generator) -> Floats:
    """Resamples [resamples, seeds, types]: with replacement, inside each type."""
    picked = rng.integers(len(scores), size=(RESAMPLES, *scores.shape))
    return np.take_along_axis(scores[None], picked, axis=1)


def _wins(arm: Floats, baseline: Floats) -> Floats:
    """Share of won pairs of seeds, [resamples]."""
    better = arm[:, :, None] - baseline[:, None, :]
    return np.asarray((np.sign(better) + 1).mean(axis=(1, 2, 3)) / 2)


def crossed(differences: Floats) -> Estimate:
    """Mean of differences [seeds, tasks]; seeds and tasks are drawn anew, each for itself.

    The bootstrap of Owen 2007 for two crossed factors: the interval speaks of other seeds and other
    tasks at once. With few seeds it is too narrow, as every bootstrap of few values. None below 2
    seeds or tasks.
    """
    seeds, tasks = differences.shape
    value = float(differences.mean())
    if min(seeds, tasks) < 2:
        return Estimate(value, None, seeds)
    rng = generator()
    of_seeds = rng.multinomial(seeds, np.full(seeds, 1 / seeds), size=RESAMPLES)
    of_tasks = rng.multinomial(tasks, np.full(tasks, 1 / tasks), size=RESAMPLES)
    means = ((of_seeds @ differences) * of_tasks).sum(axis=1) / (seeds * tasks)
    return Estimate(value, _percentiles(means), seeds)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """p values adjusted for all that are there, Holm 1979: the chance of one false alarm at all.

    The i-th smallest of m is multiplied by m - i + 1, and is no smaller than the one before it.
    None stays None and is no comparison.
    """
    known = sorted((p, n) for n, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, n) in enumerate(known):
        largest = max(largest, min(1.0, p * (len(known) - rank)))
        adjusted[n] = largest
    return adjusted


def verdict(claim_direction: Direction, interval: Interval | None) -> Verdict:
    """Whether the interval of arm - baseline lies wholly on the side that is claimed.

    Raises ValueError for another direction than higher and lower.
    """
    if claim_direction not in ("higher", "lower"):
        raise ValueError(f"claim_direction must be higher or lower, got {claim_direction!r}")
    if interval is None or interval[0] <= 0 <= interval[1]:
        return "undecided"
    return "agrees" if (interval[0] > 0) == (claim_direction == "higher") else "disagrees"


def generator() -> np.random.Generator:
    """The random stream of a bootstrap, the same at every call."""
    return np.random.default_rng(0)


def _percentiles(values: Any) -> Interval:
    low, high = np.quantile(values, ENDS)
    return float(low), float(high)
