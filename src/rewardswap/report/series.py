"""The numbers of the curves: which points, where, and joined how."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby

from rewardswap.report.records import Json, RunRecord, number
from rewardswap.statistics import wilson_interval

Point = tuple[float, float]
Range = tuple[float, float, float]
"""A place on the axis, and the lower and upper end of an interval there."""
Segments = list[list[Point]]
"""A series, cut where its line must not join."""

PHASES_OF = {
    "agent": ("learn",),
    "explorer": ("explore", "harvest"),
    "evaluation": ("evaluate",),
}


def dense_reward_key(keys: Iterable[str]) -> str | None:
    """The metric that is the mean dense reward, whatever its source's name; none without one."""
    rewards = (key for key in keys if key.endswith("_reward_mean"))
    return next((key for key in rewards if key != "outcome_reward_mean"), None)


def with_evaluations(record: RunRecord) -> list[Json]:
    """The metrics; if they hold no evaluation, with those before and after at either end."""
    if any(row["phase"] in PHASES_OF["evaluation"] for row in record.metrics):
        return record.metrics
    last = record.metrics[-1]
    start: Json = {"update": 0, "environment_steps": 0}
    end = {axis: last.get(axis) for axis in start}
    before, after = (
        []
        if evaluation is None
        else [
            {
                **at,
                "phase": "evaluate",
                "success": evaluation.get("success"),
                "success_interval": evaluation.get("interval"),
                "task_score_mean": evaluation.get("task_score"),
            }
        ]
        for at, evaluation in ((start, record.before), (end, record.after))
    )
    return [*before, *record.metrics, *after]


def with_explorer_updates(metrics: Sequence[Json]) -> list[Json]:
    """The metrics with k, how many updates the explorer had, at each update of the agent's loop."""
    explored = Counter(row.get("loop") for row in metrics if row["phase"] == "explore")
    if not explored:
        return list(metrics)
    return [
        {**row, "explorer_updates": explored[row.get("loop")]} if row["phase"] == "learn" else row
        for row in metrics
    ]


def success_ranges(metrics: Sequence[Json], x: str) -> list[Range]:
    """Wilson's 95 % interval of the agent's success, of all episodes that the running mean spans.

    It takes episodes for independent; those of one task are not, so it is somewhat too narrow.
    Empty where it is not known of every point how many episodes it is the mean of.
    """
    found = []
    for row in metrics:
        place, success = number(row.get(x)), number(row.get("success"))
        if row["phase"] == "learn" and place is not None and success is not None:
            found.append((place, success, episodes_of(row)))
    reach = running_window(len(found)) // 2
    ranges = []
    for i, (place, _, _) in enumerate(found):
        part = found[max(0, i - reach) : i + reach + 1]
        trials = sum(count for _, _, count in part)
        if not all(count for _, _, count in part):
            return []
        won = round(sum(success * count for _, success, count in part))
        ranges.append((place, *wilson_interval(min(won, trials), trials)))
    return ranges


def episodes_of(row: Json) -> int:
    """How many episodes a row of metrics is the mean of; 0 where it does not say."""
    steps, turns = number(row.get("rollout/environment_steps")), number(row.get("turns_mean"))
    return round(steps / turns) if steps and turns and steps > 0 and turns > 0 else 0


def evaluation_ranges(metrics: Sequence[Json], x: str) -> list[Range]:
    """Intervals of the success of evaluations, where they are known."""
    ranges = []
    for row in metrics:
        place, ends = number(row.get(x)), row.get("success_interval")
        if row["phase"] != "evaluate" or place is None or not isinstance(ends, list):
            continue
        known = [end for end in map(number, ends) if end is not None]
        if len(known) == 2:
            ranges.append((place, known[0], known[1]))
    return ranges


def series(metrics: Sequence[Json], role: str, x: str, y: str) -> Segments:
    """Points of the phases of a role; the explorer's are cut between loops.

    Over updates of the agent the explorer's points, which all belong to one update, are spread
    evenly up to the next one (ours, for legibility).
    """
    rows = [row for row in metrics if row["phase"] in PHASES_OF[role]]
    loops = [list(rows_of) for _, rows_of in groupby(rows, key=lambda row: row.get("loop"))]
    if role != "explorer":
        loops = [rows]
    segments = []
    for loop in loops:
        spread = role == "explorer" and x == "update"
        points = []
        for place, row in enumerate(loop, start=1):
            across, up = number(row.get(x)), number(row.get(y))
            if across is not None and up is not None:
                points.append((across + place / (len(loop) + 1) * spread, up))
        segments.append(points)
    return [points for points in segments if points]


def exploration_spans(metrics: Sequence[Json], x: str) -> list[Point]:
    """Where on the axis the explorer was at work, as starts and ends."""
    spans = []
    start = 0.0
    for exploring, rows_of in groupby(metrics, lambda row: row["phase"] in PHASES_OF["explorer"]):
        places = [place for row in rows_of if (place := number(row.get(x))) is not None]
        if not places:
            continue
        if exploring and x == "update":
            spans.append((places[0], places[0] + 1))
        elif exploring:
            spans.append((start, places[-1]))
        start = places[-1]
    return spans


def running_mean(points: Sequence[Point]) -> list[Point]:
    """Centred mean over about a twelfth of the points, shrinking at the ends."""
    reach = running_window(len(points)) // 2
    return [
        (x, _mean([y for _, y in points[max(0, i - reach) : i + reach + 1]]))
        for i, (x, _) in enumerate(points)
    ]


def running_window(count: int) -> int:
    """How many points the running mean of a series of `count` points spans."""
    return 2 * (count // 24) + 1


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
