"""The table of success by type of task."""

from collections.abc import Sequence
from dataclasses import replace

from rewardswap.comparison.arms import Arm
from rewardswap.comparison.comparing import Comparison
from rewardswap.comparison.intervals import holm, share_over_seeds
from rewardswap.comparison.paired import difference_over_seeds
from rewardswap.comparison.results import Json
from rewardswap.comparison.tables import Row, Table, count, estimate, text
from rewardswap.comparison.wording import number, p_value, points, share
from rewardswap.statistics import wilson_interval


def families_table(comparison: Comparison) -> Table:
    """Every arm on every type of task, and there against its baseline."""
    by_name = {arm.name: arm for arm in comparison.arms}
    pairs = {pair.arm: pair for pair in comparison.pairs}
    rows: list[Row] = []
    for arm in comparison.arms:
        pair = pairs.get(arm.name)
        for family in arm.families:
            row = _row(arm, family)
            found, p = None, None
            if pair is not None:
                both = [by_name[name].of(pair.seeds) for name in (pair.arm, pair.baseline)]
                found, p = difference_over_seeds(*(_successes(runs, family) for runs in both))
            rows.append({**row, **estimate("difference", found), "p": p})
    adjusted = holm([row["p"] for row in rows])
    rows = [{**row, "p_holm": p} for row, p in zip(rows, adjusted, strict=True)]
    compared = sum(row["difference"] is not None for row in rows)
    notes = (
        "Success after training by type of task: mean over seeds, Student's t interval of 95 %, "
        "cut to [0, 100]; where an arm has one seed Wilson's over its games, which says nothing of "
        "other seeds.",
        f"This table has {count(len(rows), 'interval')}, of which about one in twenty misses by "
        f"chance alone, and makes {count(compared, 'comparison')} with a baseline; the last column "
        "is adjusted for all of them (Holm).",
    )
    shown = {
        "arm": text("arm"),
        "type": text("type"),
        "tasks": number("tasks", 0),
        "success": share("success"),
        "difference, points": points("difference"),
        "p, Holm": p_value("p_holm"),
    }
    return Table("families", "By type of task", notes, tuple(rows), shown)


def _row(arm: Arm, family: str) -> Row:
    tasks = arm.runs[0]["after"]["families"][family]["tasks"]
    found = share_over_seeds(_successes(arm.runs, family))
    if len(arm.runs) == 1:
        found = replace(found, interval=wilson_interval(round(found.value * tasks), tasks))
    return {
        "arm": arm.name,
        "type": family,
        "tasks": tasks,
        "seeds": len(arm.runs),
        **estimate("success", found),
    }


def _successes(runs: Sequence[Json], family: str) -> list[float]:
    return [run["after"]["families"][family]["success"] for run in runs]
