"""The quality of a process reward model as tables for people."""

from typing import TYPE_CHECKING

from rich.table import Table

from rewardswap.shown import cell, slim_table

if TYPE_CHECKING:
    from rewardswap.rewards.quality import ProcessRewardQuality


def turns_table(quality: "ProcessRewardQuality") -> Table:
    """AUC of R_hat and of its partial sums at fixed turns, beside the length alone."""
    table = slim_table(title="process reward on held-out tasks", caption=quality.warning)
    _columns(
        table, "after turn", "episodes", "successes", "AUC", "AUC within a task", "length only"
    )
    table.add_row(
        "all turns",
        str(quality.held_out_trajectories),
        str(quality.held_out_successes),
        *(_auc(a) for a in (quality.auc_total, quality.auc_within_task, quality.auc_length_only)),
    )
    for turn in quality.turns:
        aucs = (turn.auc, turn.auc_within_task, turn.auc_length_only)
        table.add_row(str(turn.turn), str(turn.live), str(turn.successes), *(_auc(a) for a in aucs))
    return table


def families_table(quality: "ProcessRewardQuality") -> Table:
    """AUC of R_hat and Brier score per task family, beside the length alone."""
    table = slim_table(title="process reward per task family")
    names = ("episodes", "won", "AUC", "AUC within a task", "length only", "Brier")
    _columns(table, "task family", *names)
    for row in quality.families:
        aucs = (row.auc, row.auc_within_task, row.auc_length_only)
        numbers = (str(row.trajectories), str(row.successes), *(_auc(a) for a in aucs))
        table.add_row(cell(row.family), *numbers, f"{row.brier:.3f}")
    return table


def calibration_table(quality: "ProcessRewardQuality") -> Table:
    """What was predicted beside what came of it, and rank correlation in the caption."""
    table = slim_table(
        title="calibration of R_hat",
        caption=(
            f"expected calibration error {quality.calibration_error:.3f}; Brier "
            f"{quality.brier:.3f}, of the base rate {quality.brier_base_rate:.3f}; "
            f"{quality.cut_share:.0%} were outside [0, 1] and cut; rank correlation with the "
            f"outcome inside {quality.rank_tasks} tasks {_number(quality.rank_correlation)}, of "
            f"length only {_number(quality.rank_correlation_length_only)}"
        ),
    )
    _columns(table, "R_hat", "episodes", "mean R_hat", "share of successes")
    for part in quality.calibration:
        shown = (_number(part.predicted), _number(part.succeeded))
        table.add_row(f"{part.lower:.1f} - {part.upper:.1f}", str(part.count), *shown)
    return table


def _columns(table: Table, first: str, *rest: str) -> None:
    table.add_column(first, no_wrap=True)
    for column in rest:
        table.add_column(column, justify="right")


def _auc(auc: float | None) -> str:
    return "one kind only" if auc is None else f"{auc:.3f}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
