"""Whether R_hat, read as a chance of success, is one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

BINS = 10
"""Bins of equal width over [0, 1]."""


@dataclass(frozen=True, slots=True)
class CalibrationBin:
    """The trajectories whose prediction is in [lower, upper), the last bin with its end."""

    lower: float
    upper: float
    count: int
    predicted: float | None
    """Mean prediction; None in an empty bin."""
    succeeded: float | None
    """Share of successes; None in an empty bin."""


def calibration_curve(
    predicted: Sequence[float], success: Sequence[bool]
) -> tuple[CalibrationBin, ...]:
    """What was predicted and what came of it, bin by bin; predictions lie in [0, 1].

    Raises ValueError for one that does not.
    """
    values, won = np.asarray(predicted, dtype=np.float64), np.asarray(success, dtype=bool)
    outside = ~((values >= 0) & (values <= 1))
    if outside.any():
        raise ValueError(f"prediction {values[outside][0]} is outside [0, 1]; cut it first")
    places = np.minimum((values * BINS).astype(np.int64), BINS - 1)
    curve = []
    for number in range(BINS):
        here = places == number
        some = bool(here.any())
        curve.append(
            CalibrationBin(
                lower=number / BINS,
                upper=(number + 1) / BINS,
                count=int(here.sum()),
                predicted=float(values[here].mean()) if some else None,
                succeeded=float(won[here].mean()) if some else None,
            )
        )
    return tuple(curve)


def expected_calibration_error(curve: Sequence[CalibrationBin]) -> float:
    """Mean over trajectories of |prediction - share of successes| of their bin; 0 for none."""
    total = sum(part.count for part in curve)
    gaps = [
        part.count * abs(part.predicted - part.succeeded)
        for part in curve
        if part.predicted is not None and part.succeeded is not None
    ]
    return sum(gaps) / total if total else 0.0
