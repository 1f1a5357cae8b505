"""What the monitors of the runs saw: warnings, the process reward's quality, exploration."""

from collections.abc import Sequence
from statistics import fmean

from rewardswap.comparison.arms import Arm
from rewardswap.comparison.comparing import Comparison
from rewardswap.comparison.curves import thirds_of
from rewardswap.comparison.intervals import over_seeds
from rewardswap.comparison.tables import Row, Table, estimate, text
from rewardswap.comparison.wording import change, number, share


def warnings_table(comparison: Comparison) -> Table:
    """Which warnings the runs of each arm gave."""
    rows: list[Row] = []
    for arm in comparison.arms:
        kinds = dict.fromkeys(kind for run in arm.runs for kind in run["warnings"])
        for kind in kinds:
            said = [run["warnings"][kind] for run in arm.runs if kind in run["warnings"]]
            rows.append(
                {
                    "arm": arm.name,
                    "kind": kind,
                    "runs": len(said),
                    "of": len(arm.runs),
                    "first_update": fmean(each["first_update"] for each in said),
                    "count": fmean(each["count"] for each in said),
                    "words": said[0]["words"],
                }
            )
    shown = {
        "arm": text("arm"),
        "warning": text("kind"),
        "runs with it": lambda row: f"{row['runs']} of {row['of']}",
        "first at update": number("first_update", 1),
        "times a run": number("count", 1),
        "in the words of the first": text("words"),
    }
    notes = (
        "What the monitors said while the runs went on; updates and times are means over the runs "
        "that had the warning.",
    )
    return Table("warnings", "Warnings", notes, tuple(rows), shown)


def process_rewards_table(comparison: Comparison) -> Table:
    """How good the process reward models were that the runs fitted."""
    rows = tuple(row for arm in comparison.arms if (row := _quality(arm)) is not None)
    shown = {
        "arm": text("arm"),
        "models": text("models"),
        "AUC": number("auc_total", 3),
        "length alone": number("auc_length_only", 3),
        "within a task": number("auc_within_task", 3),
        "at fixed turns": number("auc_at_fixed_turns", 3),
        "Brier": number("brier", 3),
        "warned": text("warned"),
    }
    notes = (
        "On held-out tasks, means over the runs that fitted one. A model that is no better than "
        "length alone in total may know something still: at fixed turns, among episodes that go "
        "on, length says .500.",
    )
    title = "How good the process rewards were"
    return Table("process_rewards", title, notes, rows, shown)


def _quality(arm: Arm) -> Row | None:
    found = [run["process_reward"] for run in arm.runs if run["process_reward"] is not None]
    if not found:
        return None
    names = ("auc_total", "auc_length_only", "auc_within_task", "auc_at_fixed_turns", "brier")
    return {
        "arm": arm.name,
        "models": len(found),
        **{name: _mean([each[name] for each in found]) for name in names},
        "warned": sum(each["warning"] is not None for each in found),
    }


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def exploration_table(comparison: Comparison) -> Table:
    """How far the explorer went, what it left, and how narrow the agent became."""
    rows = tuple(row for arm in comparison.arms if (row := _exploration(arm)) is not None)
    shown = {
        "arm": text("arm"),
        "KL of explorer, nats": number("explorer_kl", 4),
        "successes replayed": share("replay_success_share", plain=True),
        "edit distance replayed": number("replay_edit_distance", 2),
        "effective sample size": number("effective_sample_size", 2),
        "agent's repeated states, early": number("repeated_early", 0),
        "late": number("repeated_late", 0),
        "change": change("repeated", 1.0, 0),
        "agent's edit distance": number("edit_distance", 2),
    }
    notes = (
        "Means over seeds and updates; repeated states (seen more than once in an update) in the "
        "first and the last third of the updates, their change with Student's t interval of 95 % "
        "over seeds. The explorer's KL is that to the agent, a token, at the harvest.",
    )
    return Table("exploration", "Exploration and replay", notes, rows, shown)


def _exploration(arm: Arm) -> Row | None:
    thirds = thirds_of(arm, "learn", "repeated_states")
    if thirds is None:
        return None
    early, _, late = thirds
    moved = over_seeds([after - before for before, after in zip(early, late, strict=True)])
    columns = {
        "explorer_kl": "loop",
        "replay_success_share": "loop",
        "replay_edit_distance": "loop",
        "effective_sample_size": "learn",
        "edit_distance": "learn",
    }
    return {
        "arm": arm.name,
        **{name: _over_all(arm, phase, name) for name, phase in columns.items()},
        "repeated_early": fmean(early),
        "repeated_late": fmean(late),
        **estimate("repeated", moved),
    }


def _over_all(arm: Arm, phase: str, column: str) -> float | None:
    """Mean of a column over all updates of all seeds, without what was not recorded."""
    columns = [run["curve"].get(phase, {}).get(column, []) for run in arm.runs]
    return _mean([value for values in columns for value in values])
