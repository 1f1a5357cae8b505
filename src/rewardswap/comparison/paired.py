"""An arm against its baseline: same seeds, same tasks."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import ttest_1samp

from rewardswap.comparison.arms import Arm
from rewardswap.comparison.intervals import Estimate, Floats, crossed, improvement, over_seeds
from rewardswap.comparison.results import Json


@dataclass(frozen=True)
class Paired:
    """Arm minus baseline on the fixed panel, in shares of the tasks."""

    arm: str
    baseline: str
    seeds: tuple[int, ...]
    """Seeds that both have."""
    left_out: tuple[int, ...]
    """Seeds that only one of them has."""
    difference: Estimate
    """Mean over seeds, Student's t interval."""
    p: float | None
    """Of no difference, two-sided paired t test over seeds; none where there is no interval."""
    crossed: Estimate | None
    """The same mean, drawn anew over seeds and tasks; none where a run's bits are unknown."""
    improvement: Estimate
    """Chance that a run of the arm beats one of the baseline, mean over types of task."""


def paired(arm: Arm, baseline: Arm) -> Paired | None:
    """The comparison of two arms, none where they share no seed."""
    seeds = tuple(sorted({*arm.seeds} & {*baseline.seeds}))
    if not seeds:
        return None
    ours, theirs = arm.of(seeds), baseline.of(seeds)
    successes = [[run["after"]["success"] for run in runs] for runs in (ours, theirs)]
    difference, p = difference_over_seeds(*successes)
    bits = task_differences(ours, theirs)
    return Paired(
        arm=arm.name,
        baseline=baseline.name,
        seeds=seeds,
        left_out=tuple(sorted({*arm.seeds} ^ {*baseline.seeds})),
        difference=difference,
        p=p,
        crossed=None if bits is None else crossed(bits),
        improvement=improvement(
            Arm(arm.name, None, ours).scores, Arm(baseline.name, None, theirs).scores
        ),
    )


def difference_over_seeds(
    arm: Sequence[float], baseline: Sequence[float]
) -> tuple[Estimate, float | None]:
    """Mean of arm - baseline seed by seed, and its p value where it has an interval."""
    differences = [round(a - b, 9) for a, b in zip(arm, baseline, strict=True)]
    found = over_seeds(differences)
    return found, None if found.interval is None else float(ttest_1samp(differences, 0).pvalue)


def task_differences(arm: Sequence[Json], baseline: Sequence[Json]) -> Floats | None:
    """Success of arm - baseline, [seeds, tasks]; none where the bits of a run are unknown.

    Raises ValueError if the runs have other numbers of tasks.
    """
    bits = [[_bits(run) for run in runs] for runs in (arm, baseline)]
    lengths = {len(row) for rows in bits for row in rows}
    if 0 in lengths:
        return None
    if len(lengths) > 1:
        raise ValueError(f"runs of one panel have {sorted(lengths)} tasks; make the results again")
    return np.array(bits[0], dtype=np.float64) - np.array(bits[1], dtype=np.float64)


def _bits(run: Json) -> list[int]:
    return [int(bit) for family in sorted(run["tasks"]) for bit in run["tasks"][family]]
