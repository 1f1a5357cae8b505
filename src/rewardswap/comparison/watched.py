"""What the monitors of the runs saw: warnings, the process reward's quality, planted exploits."""

from collections.abc import Sequence
from statistics import fmean

from rewardswap.comparison.arms import Arm
from rewardswap.comparison.comparing import Comparison
from rewardswap.comparison.curves import points
from rewardswap.comparison.intervals import Estimate, over_seeds, share_over_seeds, verdict
from rewardswap.comparison.tables import Row, Table, estimate, text
from rewardswap.comparison.wording import change, number, share
from rewardswap.comparison.wording import points as in_points

WHO = {"explore": "explorer", "learn": "agent"}


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


def planted_table(comparison: Comparison) -> Table:
    """Who found the planted exploit."""
    rows = tuple(
        row for arm in comparison.arms for phase in WHO if (row := _planted(arm, phase)) is not None
    )
    shown = {
        "arm": text("arm"),
        "who": text("who"),
        "seeds": text("seeds"),
        "first third": share("first"),
        "last third": share("last"),
        "change, points": in_points("change"),
        "reading": text("reading"),
    }
    notes = (
        "Share of actions with the phrase that the dense reward over-rewards, in the first and "
        "the last third of the updates: mean over seeds, Student's t interval of 95 %. The "
        "reading needs the interval of the change on one side of 0.",
    )
    return Table("planted", "Who found the planted exploit", notes, rows, shown)


def _planted(arm: Arm, phase: str) -> Row | None:
    lines = [points(run, phase, "planted_share", "environment_steps") for run in arm.runs]
    thirds = [(len(line) // 3, [value for _, value in line]) for line in lines]
    if any(third < 1 for third, _ in thirds):
        return None
    first = [fmean(values[:third]) for third, values in thirds]
    last = [fmean(values[-third:]) for third, values in thirds]
    moved = over_seeds([after - before for before, after in zip(first, last, strict=True)])
    return {
        "arm": arm.name,
        "who": WHO[phase],
        "seeds": len(arm.runs),
        **estimate("first", share_over_seeds(first)),
        **estimate("last", share_over_seeds(last)),
        **estimate("change", moved),
        "reading": _reading(moved, WHO[phase]),
    }


def _reading(moved: Estimate, who: str) -> str:
    if moved.interval is None:
        return "undecided: no interval"
    found = verdict("higher", moved.interval)
    if found == "agrees":
        return f"the {who} exploits it"
    return f"the {who} does not" if found == "disagrees" else "undecided"


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
    repeated = [_values(arm, "learn", "repeated_states", seed) for seed in range(len(arm.runs))]
    thirds = [len(values) // 3 for values in repeated]
    if not all(thirds):
        return None
    early = [fmean(values[:third]) for values, third in zip(repeated, thirds, strict=True)]
    late = [fmean(values[-third:]) for values, third in zip(repeated, thirds, strict=True)]
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
    found = [v for seed in range(len(arm.runs)) for v in _values(arm, phase, column, seed)]
    return fmean(found) if found else None


def _values(arm: Arm, phase: str, column: str, place: int) -> list[float]:
    """A column of one run, without what was not recorded."""
    column_of = arm.runs[place]["curve"].get(phase, {}).get(column, [])
    return [float(value) for value in column_of if value is not None]
