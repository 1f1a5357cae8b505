"""How well scores rank trajectories by what came of them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata, spearmanr


def area_under_curve(scores: Sequence[float], success: Sequence[bool]) -> float | None:
    """P(score of a success > score of a failure) + P(tie) / 2, the Mann-Whitney statistic.

    None when there is no pair to compare. Raises ValueError for scores that are not finite.
    """
    return area_within(scores, success, [""] * len(scores))


def area_within(
    scores: Sequence[float], success: Sequence[bool], tasks: Sequence[str]
) -> float | None:
    """AUC over the pairs of one task, all pairs weighing alike; None and ValueError as above."""
    values, won = _finite(scores), np.asarray(success, dtype=bool)
    better = pairs = 0.0
    for rows in _members(tasks):
        better += _wins(values[rows], won[rows])
        pairs += float(won[rows].sum()) * float((~won[rows]).sum())
    return better / pairs if pairs else None


def rank_correlation_within(
    scores: Sequence[float], outcomes: Sequence[float], tasks: Sequence[str]
) -> tuple[float | None, int]:
    """Spearman's correlation of scores and outcomes inside a task, mean over tasks, and how many.

    Tasks whose outcomes are all equal have none and do not count; scores that are all equal say
    nothing and count as 0. None where no task counts. Raises ValueError for scores not finite.
    """
    values, came = _finite(scores), np.asarray(outcomes, dtype=np.float64)
    found = [
        float(spearmanr(values[rows], came[rows]).statistic) if np.ptp(values[rows]) else 0.0
        for rows in _members(tasks)
        if np.ptp(came[rows])
    ]
    return (float(np.mean(found)), len(found)) if found else (None, 0)


def _members(tasks: Sequence[str]) -> list[list[int]]:
    members: dict[str, list[int]] = {}
    for n, task in enumerate(tasks):
        members.setdefault(task, []).append(n)
    return list(members.values())


def _finite(scores: Sequence[float]) -> NDArray[np.float64]:
    values = np.asarray(scores, dtype=np.float64)
    if not np.isfinite(values).all():
        raise ValueError(f"{int((~np.isfinite(values)).sum())} of {len(values)} scores not finite")
    return values


def _wins(values: NDArray[np.float64], won: NDArray[np.bool_]) -> float:
    """Pairs in which the success scores higher, ties counting half (rank-sum formula)."""
    count = int(won.sum())
    return float(rankdata(values)[won].sum()) - count * (count + 1) / 2
