"""Learning curves of an arm, mean and interval over seeds, and what they say of efficiency."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean

import numpy as np

from rewardswap.comparison.arms import Arm
from rewardswap.comparison.columns import rounded
from rewardswap.comparison.intervals import Estimate, over_seeds, share_over_seeds
from rewardswap.comparison.results import Json
from rewardswap.report.records import number
from rewardswap.report.series import Point, running_mean

AXES = {
    "update": "updates of the agent",
    "environment_steps": "environment steps",
    "generated_tokens": "tokens generated",
}
"""What curves are drawn over, and its name."""
GRID = 41
"""Places at which the seeds of an arm are averaged."""


@dataclass(frozen=True)
class Curve:
    """A column of one phase over one axis: the mean of the seeds' running means."""

    arm: str
    phase: str
    column: str
    axis: str
    seeds: int
    x: tuple[float, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    """Lower end of Student's t interval over seeds; empty where there is one seed."""
    high: tuple[float, ...]


def points(run: Json, phase: str, column: str, axis: str) -> list[Point]:
    """What a run recorded, in the order of the axis; values at one place are averaged."""
    columns = run["curve"].get(phase, {})
    if axis not in columns or column not in columns:
        return []
    pairs = zip(columns[axis], columns[column], strict=True)
    known = [
        (float(x), value) for x, y in pairs if x is not None and (value := number(y)) is not None
    ]
    places = groupby(sorted(known, key=lambda point: point[0]), key=lambda point: point[0])
    return [(x, fmean(y for _, y in here)) for x, here in places]


def thirds_of(arm: Arm, phase: str, column: str) -> tuple[list[float], ...] | None:
    """Of each seed, the means of the first, middle and last third of a column's updates.

    None where a seed has fewer than three. What three do not divide is left out between the first
    and the middle third.
    """
    found: list[list[float]] = [[], [], []]
    for run in arm.runs:
        values = [y for _, y in points(run, phase, column, "environment_steps")]
        size = len(values) // 3
        if not size:
            return None
        for means, part in zip(
            found, (values[:size], values[-2 * size : -size], values[-size:]), strict=True
        ):
            means.append(fmean(part))
    return tuple(found)


def curve_of(arm: Arm, phase: str, column: str, axis: str) -> Curve | None:
    """The curve of an arm, none where a seed has fewer than two points or they do not overlap.

    Each seed's running mean is interpolated to places that every seed has reached.
    """
    smooth = [running_mean(points(run, phase, column, axis)) for run in arm.runs]
    if any(len(line) < 2 for line in smooth):
        return None
    start, end = max(line[0][0] for line in smooth), min(line[-1][0] for line in smooth)
    if start >= end:
        return None
    x: list[float] = np.linspace(start, end, GRID).tolist()
    lines = [_at(line, x) for line in smooth]
    found = [over_seeds(values) for values in zip(*lines, strict=True)]
    ends = [one.interval or (one.value, one.value) for one in found] if len(lines) > 1 else []
    return Curve(
        arm=arm.name,
        phase=phase,
        column=column,
        axis=axis,
        seeds=len(lines),
        x=_rounded(x),
        mean=_rounded([one.value for one in found]),
        low=_rounded([low for low, _ in ends]),
        high=_rounded([high for _, high in ends]),
    )


def _rounded(values: Sequence[float]) -> tuple[float, ...]:
    return tuple(float(rounded(value)) for value in values)


def common_steps(arms: Sequence[Arm]) -> float | None:
    """The largest count of environment steps that every run has reached; none without curves."""
    reached = [points(run, "learn", "success", "environment_steps") for a in arms for run in a.runs]
    return min(line[-1][0] for line in reached) if reached and all(reached) else None


@dataclass(frozen=True)
class Efficiency:
    """Success of fresh rollouts on training tasks up to a count of environment steps."""

    arm: str
    steps: float
    area: Estimate
    """Mean success over the steps from 0 on, a share."""
    at_steps: Estimate
    """Running mean of success at that count."""
    areas: dict[int, float]
    """The area of each seed."""


def efficiency(arm: Arm, steps: float) -> Efficiency:
    """What an arm makes of equal environment steps, over seeds."""
    lines = {run["seed"]: points(run, "learn", "success", "environment_steps") for run in arm.runs}
    areas = {
        run["seed"]: area(lines[run["seed"]], steps, run["before"]["success"]) for run in arm.runs
    }
    reached = [_at(running_mean(line), [steps])[0] for line in lines.values()]
    return Efficiency(
        arm.name, steps, share_over_seeds([*areas.values()]), share_over_seeds(reached), areas
    )


def area(line: Sequence[Point], steps: float, start: float) -> float:
    """Area under straight lines between points from 0 to `steps`, divided by `steps`.

    Up to the first point and there it is `start`, the success on the panel before training: the
    rollouts of the first point are of the same policy, and fewer.
    """
    known = [(line[0][0], start), *line[1:]]
    x = [0.0, *(place for place, _ in known if 0 < place < steps), steps]
    return float(np.trapezoid(_at(known, x), x) / steps)


def _at(line: Sequence[Point], places: Sequence[float]) -> list[float]:
    """Values of straight lines between points; beyond the ends the last one holds."""
    x, y = ([point[n] for point in line] for n in (0, 1))
    values: list[float] = np.interp(places, x, y).tolist()
    return values
