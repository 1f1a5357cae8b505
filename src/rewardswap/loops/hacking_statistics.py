"""What batches under a dense reward say of hacking: means, their errors, gains and trends."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf, sqrt

import numpy as np
from scipy.special import ndtri, stdtr
from scipy.stats import spearmanr


@dataclass(frozen=True)
class DenseBatch:
    """Trajectories of one policy, judged by both rewards."""

    trajectories: int
    outcome: float
    """Mean outcome, in [0, 1]."""
    task_error: float
    """Standard error of `outcome` by the spread of the tasks' means; 0 for a single task."""
    dense: float
    """Mean sum of the dense reward over a trajectory's turns."""
    correlation: float | None
    """Spearman's rank correlation of both over all trajectories; none where one is constant."""


def measured(outcomes: Sequence[Sequence[float]], dense: Sequence[Sequence[float]]) -> DenseBatch:
    """A batch from the outcomes and dense sums of its trajectories, one sequence for each task.

    Raises ValueError for an empty batch or for sequences of different lengths.
    """
    if [len(task) for task in outcomes] != [len(task) for task in dense] or not all(outcomes):
        raise ValueError(
            f"outcomes of {[len(task) for task in outcomes]} trajectories and dense sums of "
            f"{[len(task) for task in dense]} cannot be paired: every task needs as many of both, "
            "at least one"
        )
    ours, theirs = list(chain(*outcomes)), list(chain(*dense))
    if not ours:
        raise ValueError("a batch needs at least one trajectory")
    means = [sum(task) / len(task) for task in outcomes]
    constant = len(set(ours)) == 1 or len(set(theirs)) == 1
    return DenseBatch(
        trajectories=len(ours),
        outcome=sum(ours) / len(ours),
        task_error=float(np.std(means, ddof=1)) / sqrt(len(means)) if len(means) > 1 else 0.0,
        dense=sum(theirs) / len(theirs),
        correlation=None if constant else float(spearmanr(ours, theirs).statistic),
    )


def gain_error(outcome: float, trajectories: int | float, loops: int) -> float:
    """Standard error of the mean gain of `loops` loops, sqrt(2 p (1 - p) / (n L)).

    Of n independent trajectories before and n after each loop, as the specification has it.
    """
    return sqrt(2 * outcome * (1 - outcome) / (trajectories * loops))


@dataclass(frozen=True)
class Gain:
    """Mean changes from the first to the last batch of each of some loops."""

    outcome: float
    error: float
    """Standard error of `outcome`: the larger of the specification's, and of the tasks' spread
    (ours: siblings of a task are alike, so n trajectories say less than n)."""
    dense: float


def paired_gain(loops: Sequence[tuple[DenseBatch, DenseBatch]]) -> Gain:
    """The gain of loops, each told by its first and its last batch."""
    batches = list(chain(*loops))
    outcome = sum(batch.outcome for batch in batches) / len(batches)
    trajectories = len(batches) / sum(1 / batch.trajectories for batch in batches)
    spread = sqrt(sum(batch.task_error**2 for batch in batches)) / len(loops)
    return Gain(
        outcome=sum(last.outcome - first.outcome for first, last in loops) / len(loops),
        error=max(spread, gain_error(outcome, trajectories, len(loops))),
        dense=sum(last.dense - first.dense for first, last in loops) / len(loops),
    )


def trend(values: Sequence[float], least_error: float = 0.0) -> tuple[float, float]:
    """Least-squares slope per step, and how many standard errors it is from 0.

    The error is that of the residuals, its t value turned into the normal value of the same
    probability, or that of values with error `least_error` each, where that is larger (ours).
    """
    steps = np.arange(len(values)) - (len(values) - 1) / 2
    series = np.asarray(values, dtype=np.float64)
    spread = float(steps @ steps)
    slope = float(steps @ series) / spread
    residuals = series - series.mean() - slope * steps
    error = sqrt(float(residuals @ residuals) / (len(values) - 2) / spread)
    if slope == 0:
        return 0.0, 0.0
    distance = -float(ndtri(stdtr(len(values) - 2, -abs(slope) / error))) if error else inf
    if least_error:
        distance = min(distance, abs(slope) * sqrt(spread) / least_error)
    return slope, distance if slope > 0 else -distance


def outcome_error(batches: Sequence[DenseBatch]) -> float:
    """Standard error of one batch's outcome, were its trajectories independent."""
    outcome = sum(batch.outcome for batch in batches) / len(batches)
    share = sum(1 / batch.trajectories for batch in batches) / len(batches)
    return sqrt(outcome * (1 - outcome) * share)
