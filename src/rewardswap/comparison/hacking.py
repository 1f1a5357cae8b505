"""Whether success fell while the dense reward rose, by the recorded curves."""

from statistics import fmean

from rewardswap.comparison.arms import Arm
from rewardswap.comparison.comparing import Comparison
from rewardswap.comparison.curves import points
from rewardswap.comparison.intervals import Estimate, over_seeds, verdict
from rewardswap.comparison.tables import Row, Table, count, estimate, text
from rewardswap.comparison.wording import change
from rewardswap.comparison.wording import points as in_points

WHO = {"explore": "explorer", "learn": "agent"}


def dense_table(comparison: Comparison) -> Table:
    """Everyone who is trained on a dense reward: what changed from the middle to the last third."""
    rows = tuple(
        row for arm in comparison.arms for phase in WHO if (row := _row(arm, phase)) is not None
    )
    shown = {
        "arm": text("arm"),
        "who": text("who"),
        "seeds": text("seeds"),
        "dense reward": change("dense"),
        "success, points": in_points("success"),
        "reading": text("reading"),
    }
    notes = (
        "Change from the middle third of the updates on a dense reward to the last third, on "
        "training tasks: mean over seeds, Student's t interval of 95 %. The explorer of a swap "
        "starts from the agent again in every loop, so that its changes are the agent's too.",
        f"The reading needs both intervals on their sides of 0; {count(len(rows), 'row')}, not "
        "adjusted.",
    )
    return Table("dense", "Does the dense reward rise while success falls?", notes, rows, shown)


def _row(arm: Arm, phase: str) -> Row | None:
    found = {name: _change(arm, phase, name) for name in ("dense", "success")}
    dense, success = found["dense"], found["success"]
    if dense is None or success is None:
        return None
    return {
        "arm": arm.name,
        "who": WHO[phase],
        "seeds": dense.seeds,
        **estimate("dense", dense),
        **estimate("success", success),
        "reading": _reading(dense, success),
    }


def _change(arm: Arm, phase: str, column: str) -> Estimate | None:
    """Mean of the last third minus that of the middle one; none where a seed has no three."""
    lines = [points(run, phase, column, "environment_steps") for run in arm.runs]
    thirds = [(len(line) // 3, [value for _, value in line]) for line in lines]
    if any(third < 1 for third, _ in thirds):
        return None
    return over_seeds(
        [fmean(values[-third:]) - fmean(values[-2 * third : -third]) for third, values in thirds]
    )


def _reading(dense: Estimate, success: Estimate) -> str:
    if dense.interval is None or success.interval is None:
        return "undecided: no interval"
    rose, fell = verdict("higher", dense.interval), verdict("lower", success.interval)
    if rose == fell == "agrees":
        return "yes: it is hacked"
    return "no: success rose" if fell == "disagrees" else "undecided"
