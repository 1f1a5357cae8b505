"""Intervals of success rates and of means."""

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, stdev

from scipy.stats import binomtest
from scipy.stats import t as student

Interval = tuple[float, float]
"""Lower and upper end."""


def wilson_interval(successes: int, trials: int, confidence: float = 0.95) -> Interval:
    """Wilson score interval of a success rate.

    (p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n), Wilson 1927, as computed by scipy.

    Raises ValueError if there is no trial or `successes` is not a count among `trials`.
    """
    if trials < 1:
        raise ValueError(f"an interval needs at least one trial, got trials={trials}")
    if not 0 <= successes <= trials:
        raise ValueError(f"successes={successes} is not between 0 and trials={trials}")
    interval = binomtest(successes, trials).proportion_ci(confidence, method="wilson")
    return float(interval.low), float(interval.high)


def mean_interval(values: Sequence[float], confidence: float = 0.95) -> Interval | None:
    """Student's t interval of the mean of independent values.

    m ± t_(1+confidence)/2,n-1 · s/√n. None where it says nothing: for fewer than two values, or
    values that are all equal.
    """
    if len(set(values)) < 2:
        return None
    mean = fmean(values)
    quantile = float(student.ppf((1 + confidence) / 2, len(values) - 1))
    reach = quantile * stdev(values) / sqrt(len(values))
    return mean - reach, mean + reach


def difference_interval(
    before: float, before_interval: Interval, after: float, after_interval: Interval
) -> Interval:
    """Interval of `after - before`, from the intervals of the two rates.

    d - √((a - a_low)² + (b_high - b)²), d + √((a_high - a)² + (b - b_low)²): Newcombe 1998,
    method 10, for independent samples. Rates of the same tasks are usually positively
    correlated; the interval is then wider than it need be.
    """
    (before_low, before_high), (after_low, after_high) = before_interval, after_interval
    difference = after - before
    return (
        difference - sqrt((after - after_low) ** 2 + (before_high - before) ** 2),
        difference + sqrt((after_high - after) ** 2 + (before - before_low) ** 2),
    )
