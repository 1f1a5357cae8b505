"""What rules look at: a run's record as series of numbers, and its settings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from rewardswap.report.records import Json, RunRecord, number
from rewardswap.statistics import Interval, difference_interval, mean_interval

WINDOW = 10
"""Most rows of metrics that a mean is taken over (ours)."""
LEAST_ROWS = 3
"""Fewest rows that a mean says something of (ours)."""


class NoDataError(Exception):
    """A rule cannot tell: what it reads is not in the record; the message says what."""


class DoesNotApplyError(Exception):
    """A rule has nothing to look at in a run with these settings; the message says why."""


Point = tuple[float, float]
"""Update of the agent, value."""


@dataclass(frozen=True)
class Window:
    """The mean of some rows in a row."""

    first: float
    """Update of the first row."""
    last: float
    mean: float
    interval: Interval
    """Student's t, 95 %; the mean alone where all values are equal."""

    @property
    def where(self) -> str:
        """In which updates, in words."""
        if self.first == self.last:
            return f"update {self.first:.0f}"
        return f"updates {self.first:.0f} to {self.last:.0f}"


@dataclass(frozen=True)
class Change:
    """What became of a mean from the first rows to the last."""

    first: Window
    last: Window
    interval: Interval
    """Of the difference, Newcombe's from both intervals, 95 %."""

    @property
    def rose(self) -> bool:
        """Whether the interval lies above 0."""
        return self.interval[0] > 0

    @property
    def fell(self) -> bool:
        """Whether the interval lies below 0."""
        return self.interval[1] < 0


@dataclass(frozen=True)
class Observed:
    """A run as the rules see it."""

    record: RunRecord
    settings: Json
    """The tables of config.toml; empty where it could not be read."""
    warnings: Sequence[Json]
    """The lines of warnings.jsonl."""

    def setting(self, name: str) -> Any:
        """The value of a dotted setting, None where it is not written or `none`."""
        value: Any = self.settings
        for part in name.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        return None if value == "none" else value

    def amount(self, name: str) -> float | None:
        """A setting that is a number."""
        return number(self.setting(name))

    def rows(self, *phases: str) -> list[Json]:
        """The rows of metrics of some phases, in order."""
        return [row for row in self.record.metrics if row["phase"] in phases]

    def points(self, name: str, *phases: str) -> list[Point]:
        """The finite values of a metric; raises NoDataError for fewer than LEAST_ROWS."""
        return _enough(
            name, [(row["update"], number(row.get(name))) for row in self.rows(*phases)], phases
        )

    def shares(self, count: str, *phases: str, of: str) -> list[Point]:
        """A count of rollouts by row, divided by the row's `steps` or `episodes`."""
        found: list[tuple[float, float | None]] = []
        for row in self.rows(*phases):
            counted, steps = number(row.get(count)), number(row.get("rollout/environment_steps"))
            turns = 1.0 if of == "steps" else number(row.get("turns_mean"))
            share = None if counted is None or not steps or not turns else counted * turns / steps
            found.append((row["update"], share))
        return _enough(count, found, phases)

    def total(self, name: str, *phases: str) -> float:
        """The sum of a count over rows; raises NoDataError where no row has it."""
        values = [number(row.get(name)) for row in self.rows(*phases)]
        known = [value for value in values if value is not None]
        if not known:
            raise NoDataError(f"no {name} in metrics.jsonl")
        return sum(known)

    def reached(self, name: str) -> float:
        """The last value of a sum over the run; raises NoDataError where no row has it."""
        values = [number(row.get(name)) for row in self.record.metrics]
        known = [value for value in values if value is not None]
        if not known:
            raise NoDataError(f"no {name} in metrics.jsonl")
        return known[-1]


def window(points: Sequence[Point]) -> Window:
    """The mean of all points."""
    values = [value for _, value in points]
    mean = fmean(values)
    interval = mean_interval(values) or (mean, mean)
    return Window(points[0][0], points[-1][0], mean, interval)


def last(points: Sequence[Point]) -> Window:
    """The mean of the last rows."""
    return window(points[-WINDOW:])


def worst(
    points: Sequence[Point], of: Callable[[Sequence[float]], float], reach: int = WINDOW
) -> Window:
    """The stretch of `reach` rows (all, where there are fewer) with the `max` or `min` mean."""
    reach = min(reach, len(points))
    sums = [sum(v for _, v in points[n : n + reach]) for n in range(len(points) - reach + 1)]
    start = sums.index(of(sums))
    return window(points[start : start + reach])


def change(points: Sequence[Point]) -> Change:
    """From the first rows to the last; raises NoDataError where they are too few to have both."""
    reach = min(WINDOW, len(points) // 2)
    if reach < LEAST_ROWS:
        raise NoDataError(f"{2 * LEAST_ROWS} updates are needed to see a change")
    first, end = window(points[:reach]), window(points[-reach:])
    return Change(
        first, end, difference_interval(first.mean, first.interval, end.mean, end.interval)
    )


def _enough(
    name: str, found: Sequence[tuple[float, float | None]], phases: Sequence[str]
) -> list[Point]:
    points = [(update, value) for update, value in found if value is not None]
    if not points:
        raise NoDataError(f"no {name} in the {' and '.join(phases)} rows")
    if len(points) < LEAST_ROWS:
        raise NoDataError(f"{len(points)} of {LEAST_ROWS} rows that are needed")
    return points
