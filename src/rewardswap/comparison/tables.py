"""The tables of a comparison: raw rows for CSV, and the same in words."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from rewardswap.comparison.arms import Arm
from rewardswap.comparison.comparing import Comparison
from rewardswap.comparison.intervals import Estimate, holm, interquartile_mean, share_over_seeds
from rewardswap.comparison.paired import Paired
from rewardswap.comparison.wording import number, p_value, points, share

Row = dict[str, Any]
TOTAL = "all phases"


@dataclass(frozen=True)
class Table:
    """One table: what CSV holds, what a page shows, and the sentences above it."""

    name: str
    """Of its CSV file, without the ending."""
    title: str
    notes: tuple[str, ...]
    rows: tuple[Row, ...]
    shown: Mapping[str, Callable[[Row], str]]
    """Heading to what stands in a row."""


def estimate(name: str, found: Estimate | None) -> Row:
    """An estimate as three columns of a row: value, low, high; None where unknown."""
    low, high = (None, None) if found is None or found.interval is None else found.interval
    return {
        name: None if found is None else found.value,
        f"{name}_low": low,
        f"{name}_high": high,
    }


def text(name: str) -> Callable[[Row], str]:
    """A column as it is."""
    return lambda row: "–" if row[name] is None else str(row[name])


def arms_table(comparison: Comparison) -> Table:
    """Success of every arm on the panel, over seeds."""
    rows = []
    for arm in comparison.arms:
        success = {
            when: share_over_seeds([run[when]["success"] for run in arm.runs])
            for when in ("before", "after")
        }
        rows.append(
            {
                "arm": arm.name,
                "seeds": len(arm.runs),
                "panel": arm.runs[0]["panel"]["split"],
                "tasks": arm.runs[0]["panel"]["tasks"],
                "temperature": arm.runs[0]["temperature"],
                **estimate("before", success["before"]),
                **estimate("after", success["after"]),
                **estimate("iqm", interquartile_mean(arm.scores)),
                **estimate(
                    "task_score", share_over_seeds([r["after"]["task_score"] for r in arm.runs])
                ),
                "mean_turns": fmean(run["after"]["mean_turns"] for run in arm.runs),
                "invalid_action_rate": fmean(r["after"]["invalid_action_rate"] for r in arm.runs),
            }
        )
    shown = {
        "arm": text("arm"),
        "seeds": text("seeds"),
        "before": share("before", plain=True),
        "after": share("after"),
        "interquartile mean": share("iqm"),
        "task score": number("task_score", 3),
        "turns": number("mean_turns", 1),
        "invalid actions": share("invalid_action_rate", plain=True),
    }
    notes = (
        "Success on the fixed panel: mean over seeds, Student's t interval of 95 %.",
        "Interquartile mean over seeds and types of task, stratified bootstrap: all types of a "
        "seed are played by one policy, so that this interval is too narrow where seeds differ as "
        "a whole.",
    )
    return Table("arms", "Arms", notes, tuple(rows), shown)


def paired_table(comparison: Comparison) -> Table:
    """Every arm against its baseline, seed by seed on the same tasks."""
    pairs = comparison.pairs
    adjusted = holm([pair.p for pair in pairs])
    rows = tuple(_pair_row(pair, p) for pair, p in zip(pairs, adjusted, strict=True))
    shown = {
        "arm": text("arm"),
        "against": text("baseline"),
        "seeds": text("seeds"),
        "difference, points": points("difference"),
        "other seeds and tasks": points("crossed"),
        "chance of improvement": share("improvement"),
        "p": p_value("p"),
        "p, Holm": p_value("p_holm"),
    }
    notes = (
        "Arm minus baseline on the same tasks with the same seeds, in percentage points: mean over "
        "seeds, Student's t interval of 95 %; then the interval for other seeds and other tasks at "
        "once (crossed bootstrap).",
        "Chance of improvement: how often a run of the arm beats one of the baseline, ties half, "
        "mean over types of task.",
        f"This table makes {count(len(rows), 'comparison')}, "
        f"{sum(p is not None for p in adjusted)} with a p value. The intervals are not adjusted; "
        "the last column is (Holm: the chance of one false alarm among all).",
    )
    return Table("paired", "Differences to the baselines", notes, rows, shown)


def _pair_row(pair: Paired, adjusted: float | None) -> Row:
    return {
        "arm": pair.arm,
        "baseline": pair.baseline,
        "seeds": len(pair.seeds),
        "seeds_left_out": len(pair.left_out),
        **estimate("difference", pair.difference),
        **estimate("crossed", pair.crossed),
        **estimate("improvement", pair.improvement),
        "p": pair.p,
        "p_holm": adjusted,
    }


def phases_table(comparison: Comparison) -> Table:
    """Costs of every arm per phase, means over seeds."""
    rows = [row for arm in comparison.arms for row in _phase_rows(arm)]
    lacking = sorted(
        {arm.name for arm in comparison.arms if not all(r["phases"] for r in arm.runs)}
    )
    shown = {
        "arm": text("arm"),
        "phase": text("phase"),
        **{name.replace("_", " "): number(name, 0) for name in COSTS},
    }
    notes = ["Means over seeds of what a run spent. Seconds depend on the machine and its load."]
    if lacking:
        notes.append(f"Phases were not recorded in every run of: {', '.join(lacking)}.")
    return Table("phases", "What it cost", tuple(notes), tuple(rows), shown)


COSTS = ("environment_steps", "generated_tokens", "trained_tokens", "updates", "seconds")


def _phase_rows(arm: Arm) -> list[Row]:
    recorded = [run["phases"] for run in arm.runs]
    names = list(dict.fromkeys(name for phases in recorded for name in phases))
    if not all(recorded):
        names = []
    rows: list[Row] = [
        {
            "arm": arm.name,
            "phase": name,
            **{key: fmean(p.get(name, {}).get(key, 0) for p in recorded) for key in COSTS},
        }
        for name in names
    ]
    counters = [{**run["counters"], "updates": run["counters"]["all_updates"]} for run in arm.runs]
    total = {key: fmean(counted[key] for counted in counters) for key in COSTS}
    return [*rows, {"arm": arm.name, "phase": TOTAL, **total}]


def count(number_of: int, thing: str) -> str:
    """A number of things in words."""
    return f"{number_of} {thing}{'' if number_of == 1 else 's'}"
