"""The tables of what was run, and of the curves."""

import json
from collections.abc import Sequence
from dataclasses import replace

from rewardswap.comparison.arms import Arm
from rewardswap.comparison.comparing import Comparison
from rewardswap.comparison.curves import Curve
from rewardswap.comparison.efficiency import efficiency_table
from rewardswap.comparison.families import families_table
from rewardswap.comparison.hacking import dense_table, planted_table
from rewardswap.comparison.results import COUNTERS, Json
from rewardswap.comparison.tables import (
    Row,
    Table,
    arms_table,
    paired_table,
    phases_table,
    text,
)
from rewardswap.comparison.watched import (
    exploration_table,
    process_rewards_table,
    warnings_table,
)
from rewardswap.comparison.wording import number, share


def tables_of(comparison: Comparison) -> list[Table]:
    """All tables that a page shows, each with the sentence of what is mixed."""
    watched = (
        planted_table(comparison),
        exploration_table(comparison),
        process_rewards_table(comparison),
        warnings_table(comparison),
    )
    made = [
        arms_table(comparison),
        paired_table(comparison),
        efficiency_table(comparison),
        families_table(comparison),
        dense_table(comparison),
        *(table for table in watched if table.rows),
        phases_table(comparison),
        settings_table(comparison.arms),
        runs_table(comparison.arms),
    ]
    if not comparison.mixture:
        return made
    return [replace(table, notes=(*table.notes, comparison.mixture)) for table in made]


def settings_table(arms: Sequence[Arm]) -> Table:
    """What the arms are."""
    rows = tuple(
        {
            "arm": arm.name,
            "baseline": arm.baseline,
            "budget": " ".join(str(value) for value in arm.runs[0]["budget"].values()),
            "changed": ", ".join(
                f"{key} = {value}" for key, value in arm.runs[0]["settings_changed"].items()
            ),
            "settings": arm.runs[0]["settings"],
        }
        for arm in arms
    )
    shown = {
        "arm": text("arm"),
        "against": text("baseline"),
        "budget": text("budget"),
        "changed from its recipe": text("changed"),
    }
    return Table("settings", "Settings", (), rows, shown)


def runs_table(arms: Sequence[Arm]) -> Table:
    """Every run: what it gave, what it took, where it was made."""
    rows = tuple(_run_row(run) for arm in arms for run in arm.runs)
    shown = {
        "arm": text("arm"),
        "seed": text("seed"),
        "before": share("before"),
        "after": share("after"),
        "updates": number("agent_updates", 0),
        "environment steps": number("environment_steps", 0),
        "failed episodes": number("failed_episodes", 0),
        "seconds": number("seconds", 0),
        "commit": text("commit"),
        "panel": text("panel"),
    }
    return Table("runs", "Runs", (), rows, shown)


def _run_row(run: Json) -> Row:
    return {
        "experiment": run["experiment"],
        "arm": run["arm"],
        "seed": run["seed"],
        "commit": run["commit"],
        "settings": run["settings"],
        "panel": run["panel"]["hash"],
        "before": run["before"]["success"],
        "after": run["after"]["success"],
        "task_score": run["after"]["task_score"],
        **{name: run["counters"][name] for name in COUNTERS},
        "settings_changed": json.dumps(run["settings_changed"]),
        "command": run["command"],
        "mixed": " ".join(run["mixed"]),
    }


def curves_table(curves: Sequence[Curve]) -> Table:
    """Every place of every curve."""
    rows = [row for curve in curves for row in _curve_rows(curve)]
    return Table("curves", "Curves", (), tuple(rows), {})


def _curve_rows(curve: Curve) -> list[Row]:
    ends = curve.low or (None,) * len(curve.x), curve.high or (None,) * len(curve.x)
    return [
        {
            "arm": curve.arm,
            "phase": curve.phase,
            "column": curve.column,
            "axis": curve.axis,
            "seeds": curve.seeds,
            "x": x,
            "mean": mean,
            "low": low,
            "high": high,
        }
        for x, mean, low, high in zip(curve.x, curve.mean, *ends, strict=True)
    ]
