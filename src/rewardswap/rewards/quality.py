"""How good a process reward model is on tasks that it has not seen, beside counting turns.

A win ends an episode, so minus the number of turns alone often tells success from failure. The
question that matters is asked at a fixed turn among the episodes that are still running.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from rewardswap.rewards.calibration import (
    CalibrationBin,
    calibration_curve,
    expected_calibration_error,
)
from rewardswap.rewards.probes import ProbeReport
from rewardswap.rewards.quality_tables import calibration_table, families_table, turns_table
from rewardswap.rewards.ranking import area_under_curve, area_within, rank_correlation_within
from rewardswap.types import Trajectory

CHANCE = 0.5


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
class FamilyQuality:
    """Quality of R_hat among the trajectories of one task family."""

    family: str
    trajectories: int
    successes: int
    auc: float | None
    """AUC against success; None when all or none succeed."""
    auc_within_task: float | None
    """The same over pairs of one task; None when no task has both."""
    auc_length_only: float | None
    """AUC of minus the number of turns."""
    brier: float


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
    brier_base_rate: float
    """The Brier score of always predicting the share of successes, p (1 - p)."""
    calibration_error: float
    """Expected calibration error of R_hat cut to [0, 1]."""
    calibration: tuple[CalibrationBin, ...]
    rank_correlation: float | None
    """Spearman's correlation of R_hat and outcome inside a task, mean over `rank_tasks` tasks."""
    rank_correlation_length_only: float | None
    """The same of minus the number of turns."""
    rank_tasks: int
    """Tasks whose outcomes differ."""
    families: tuple[FamilyQuality, ...]
    """Task families in alphabetical order."""
    probes: ProbeReport | None = None
    """How changed trajectories are read, where that was asked."""

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
        said = [*self._warnings(), *(self.probes.warnings if self.probes else ())]
        return " ".join(said) or None

    def _warnings(self) -> Iterator[str]:
        fixed = self.auc_at_fixed_turns
        if self.auc_total is None:
            yield (
                f"{self.held_out_successes} of {self.held_out_trajectories} held-out episodes "
                "succeeded: with one kind only the quality cannot be told."
            )
            return
        if fixed is None:
            yield "No fixed turn has live episodes of both kinds: only the total can be judged."
        elif fixed < 0.55 and self.auc_total >= 0.6:
            yield (
                f"This process reward is a turn counter: its total has AUC {self.auc_total:.2f} "
                f"(episode length alone {self.auc_length_only:.2f}), but among episodes still "
                f"running at a fixed turn it has {fixed:.2f}, no better than chance."
            )
        elif not _below_chance(fixed) and fixed < 0.55:
            yield f"This process reward knows little: AUC {fixed:.2f} at fixed turns is chance."
        worse = {
            "in total": self.auc_total,
            "within a task": self.auc_within_task,
            "at fixed turns": fixed,
        }
        below = [f"{auc:.2f} {where}" for where, auc in worse.items() if _below_chance(auc)]
        if below:
            yield (
                f"This process reward is worse than chance: AUC {', '.join(below)}; it ranks "
                "failures above successes there."
            )

    def as_dict(self) -> dict[str, Any]:
        """All numbers and the warning, ready for JSON."""
        return {
            **asdict(self),
            **{
                name: [asdict(row) for row in getattr(self, name)]
                for name in ("turns", "calibration", "families")
            },
            "auc_at_fixed_turns": self.auc_at_fixed_turns,
            "warning": self.warning,
        }

    def with_probes(self, probes: ProbeReport) -> "ProcessRewardQuality":
        """The same quality with what changed trajectories told, in its warning too."""
        return replace(self, probes=probes)

    def table(self) -> Table:
        """The numbers for people: the total first, then fixed turns."""
        return turns_table(self)

    def tables(self) -> tuple[Table, ...]:
        """All numbers for people: `table`, task families, calibration, and probes if any."""
        said = () if self.probes is None else (self.probes.table(),)
        return (turns_table(self), families_table(self), calibration_table(self), *said)


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
    outcomes = [t.outcome for t in trajectories]
    shorter = [-float(len(t.turns)) for t in trajectories]
    totals = np.array([np.sum(row, dtype=np.float64) for row in rewards])
    clipped = totals.clip(0.0, 1.0)
    curve = calibration_curve(clipped.tolist(), success)
    rank_correlation, rank_tasks = rank_correlation_within(totals.tolist(), outcomes, tasks)
    rate = sum(success) / len(success)
    places = range(1, -int(min(shorter)), 2) if turns is None else turns
    return ProcessRewardQuality(
        auc_total=area_under_curve(totals.tolist(), success),
        auc_within_task=area_within(totals.tolist(), success, tasks),
        auc_length_only=area_under_curve(shorter, success),
        brier=float(np.square(clipped - success).mean()),
        cut_share=float((clipped != totals).mean()),
        turns=tuple(_at(turn, trajectories, rewards) for turn in places),
        held_out_trajectories=len(trajectories),
        held_out_successes=sum(success),
        trained_on_trajectories=trained_on_trajectories,
        validation_trajectories=validation_trajectories,
        brier_base_rate=rate * (1 - rate),
        calibration_error=expected_calibration_error(curve),
        calibration=curve,
        rank_correlation=rank_correlation,
        rank_correlation_length_only=rank_correlation_within(shorter, outcomes, tasks)[0],
        rank_tasks=rank_tasks,
        families=tuple(
            _of_family(family, trajectories, totals)
            for family in sorted({t.task.family for t in trajectories})
        ),
    )


def _of_family(
    family: str, trajectories: Sequence[Trajectory], totals: NDArray[np.float64]
) -> FamilyQuality:
    rows = [n for n, t in enumerate(trajectories) if t.task.family == family]
    members = [trajectories[n] for n in rows]
    success = [t.success for t in members]
    tasks = [t.task.id for t in members]
    return FamilyQuality(
        family=family,
        trajectories=len(rows),
        successes=sum(success),
        auc=area_under_curve(totals[rows].tolist(), success),
        auc_within_task=area_within(totals[rows].tolist(), success, tasks),
        auc_length_only=area_under_curve([-float(len(t.turns)) for t in members], success),
        brier=float(np.square(totals[rows].clip(0.0, 1.0) - success).mean()),
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
        auc_within_task=area_within(partial, success, [trajectories[n].task.id for n in live]),
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


def _below_chance(auc: float | None) -> bool:
    """Whether an AUC is as far below chance as one must be above it to say something (ours)."""
    return auc is not None and auc < CHANCE - 0.05
