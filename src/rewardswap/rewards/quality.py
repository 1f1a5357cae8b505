"""How good a process reward model is on tasks that it has not seen, beside counting turns.

A win ends an episode, so minus the number of turns alone often tells success from failure. The
question that matters is asked at a fixed turn among the episodes that are still running.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from scipy.stats import rankdata

from rewardswap.types import Trajectory


@dataclass(frozen=True, slots=True)
class TurnQuality:
    """Partial sums after `turn` turns, among the episodes that go on after it."""

    turn: int
    live: int
    """Episodes with more than `turn` turns."""
    successes: int
    """How many of them succeed in the end."""
    auc: float | None
    """AUC of the partial sums against success; None when all or none succeed."""
    auc_within_task: float | None
    """The same over pairs of one task, the comparison that a group's advantage makes."""
    auc_length_only: float | None
    """AUC of minus the turns so far: all live episodes tie, so one half."""


@dataclass(frozen=True, slots=True)
class ProcessRewardQuality:
    """Quality of R_hat = sum_t r_t and of its partial sums on held-out trajectories."""

    auc_total: float | None
    """AUC of R_hat against success; None when all or none succeed."""
    auc_within_task: float | None
    """The same over pairs of one task; None when no task has both."""
    auc_length_only: float | None
    """AUC of minus the number of turns."""
    brier: float
    """mean (R_hat - success)^2 with R_hat cut to [0, 1]."""
    cut_share: float
    """Share of trajectories whose R_hat was outside [0, 1] there."""
    turns: tuple[TurnQuality, ...]
    held_out_trajectories: int
    held_out_successes: int
    trained_on_trajectories: int
    validation_trajectories: int

    @property
    def auc_at_fixed_turns(self) -> float | None:
        """Mean AUC at fixed turns, weighted by pairs of a success and a failure."""
        pairs = [(t.successes * (t.live - t.successes), t.auc) for t in self.turns]
        weight = sum(count for count, auc in pairs if auc is not None)
        if not weight:
            return None
        return sum(count * auc for count, auc in pairs if auc is not None) / weight

    @property
    def warning(self) -> str | None:
        """What is wrong with this model, in words; None when nothing is seen."""
        fixed = self.auc_at_fixed_turns
        if self.auc_total is None:
            return (
                f"{self.held_out_successes} of {self.held_out_trajectories} held-out episodes "
                "succeeded: with one kind only the quality cannot be told."
            )
        if fixed is None:
            return "No fixed turn has live episodes of both kinds: only the total can be judged."
        if fixed < 0.55 and self.auc_total >= 0.6:
            return (
                f"This process reward is a turn counter: its total has AUC {self.auc_total:.2f} "
                f"(episode length alone {self.auc_length_only:.2f}), but among episodes still "
                f"running at a fixed turn it has {fixed:.2f}, no better than chance."
            )
        if fixed < 0.55:
            return f"This process reward knows little: AUC {fixed:.2f} at fixed turns is chance."
        return None

    def as_dict(self) -> dict[str, Any]:
        """All numbers and the warning, ready for JSON."""
        return {
            **asdict(self),
            "turns": [asdict(turn) for turn in self.turns],
            "auc_at_fixed_turns": self.auc_at_fixed_turns,
            "warning": self.warning,
        }

    def table(self) -> Table:
        """The numbers for people: the total first, then fixed turns."""
        table = Table(title="process reward on held-out tasks", caption=self.warning)
        columns = ("after turn", "episodes", "successes", "AUC", "AUC within a task", "length only")
        for place, column in enumerate(columns):
            table.add_column(column, justify="right" if place else "left")
        table.add_row(
            "all turns",
            str(self.held_out_trajectories),
            str(self.held_out_successes),
            *(_shown(a) for a in (self.auc_total, self.auc_within_task, self.auc_length_only)),
        )
        for turn in self.turns:
            aucs = (turn.auc, turn.auc_within_task, turn.auc_length_only)
            table.add_row(
                str(turn.turn), str(turn.live), str(turn.successes), *(_shown(a) for a in aucs)
            )
        return table


def _shown(auc: float | None) -> str:
    return "one kind only" if auc is None else f"{auc:.3f}"


def area_under_curve(scores: Sequence[float], success: Sequence[bool]) -> float | None:
    """P(score of a success > score of a failure) + P(tie) / 2, the Mann-Whitney statistic.

    None when there is no pair to compare. Raises ValueError for scores that are not finite.
    """
    return _within(scores, success, [""] * len(scores))


def _within(scores: Sequence[float], success: Sequence[bool], tasks: Sequence[str]) -> float | None:
    """AUC over the pairs of one task, all pairs weighing alike."""
    values, won = np.asarray(scores, dtype=np.float64), np.asarray(success, dtype=bool)
    if not np.isfinite(values).all():
        raise ValueError(f"{int((~np.isfinite(values)).sum())} of {len(values)} scores not finite")
    members: dict[str, list[int]] = {}
    for n, task in enumerate(tasks):
        members.setdefault(task, []).append(n)
    better = pairs = 0.0
    for rows in members.values():
        better += _wins(values[rows], won[rows])
        pairs += float(won[rows].sum()) * float((~won[rows]).sum())
    return better / pairs if pairs else None


def _wins(values: NDArray[np.float64], won: NDArray[np.bool_]) -> float:
    """Pairs in which the success scores higher, ties counting half (rank-sum formula)."""
    count = int(won.sum())
    return float(rankdata(values)[won].sum()) - count * (count + 1) / 2


def judge(
    trajectories: Sequence[Trajectory],
    rewards: Sequence[Sequence[float]],
    *,
    turns: Sequence[int] | None = None,
    trained_on_trajectories: int = 0,
    validation_trajectories: int = 0,
) -> ProcessRewardQuality:
    """Quality of per-turn rewards on trajectories that were held out.

    `turns` are the fixed turns, by default 1, 3, 5, ... as far as any episode goes on. Raises
    ValueError when `rewards` does not have one number per turn.
    """
    _check(trajectories, rewards)
    success = [t.success for t in trajectories]
    tasks = [t.task.id for t in trajectories]
    lengths = np.array([len(t.turns) for t in trajectories])
    totals = np.array([np.sum(row, dtype=np.float64) for row in rewards])
    places = range(1, int(lengths.max()), 2) if turns is None else turns
    clipped = totals.clip(0.0, 1.0)
    return ProcessRewardQuality(
        auc_total=area_under_curve(totals.tolist(), success),
        auc_within_task=_within(totals.tolist(), success, tasks),
        auc_length_only=area_under_curve([-float(n) for n in lengths], success),
        brier=float(np.square(clipped - success).mean()),
        cut_share=float((clipped != totals).mean()),
        turns=tuple(_at(turn, trajectories, rewards) for turn in places),
        held_out_trajectories=len(trajectories),
        held_out_successes=sum(success),
        trained_on_trajectories=trained_on_trajectories,
        validation_trajectories=validation_trajectories,
    )


def _at(
    turn: int, trajectories: Sequence[Trajectory], rewards: Sequence[Sequence[float]]
) -> TurnQuality:
    live = [n for n, t in enumerate(trajectories) if len(t.turns) > turn]
    success = [trajectories[n].success for n in live]
    partial = [float(np.sum(rewards[n][:turn], dtype=np.float64)) for n in live]
    return TurnQuality(
        turn=turn,
        live=len(live),
        successes=sum(success),
        auc=area_under_curve(partial, success),
        auc_within_task=_within(partial, success, [trajectories[n].task.id for n in live]),
        auc_length_only=area_under_curve([-float(turn)] * len(live), success),
    )


def _check(trajectories: Sequence[Trajectory], rewards: Sequence[Sequence[float]]) -> None:
    if not trajectories:
        raise ValueError("no held-out trajectories to judge a process reward by")
    for trajectory, row in zip(trajectories, rewards, strict=True):
        if len(row) != len(trajectory.turns):
            raise ValueError(
                f"{len(row)} rewards for the {len(trajectory.turns)} turns of task "
                f"{trajectory.task.id!r}, episode {trajectory.index}"
            )
