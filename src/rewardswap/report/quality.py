"""Whether a process reward model is what its headline AUC says."""

from dataclasses import dataclass

from rewardswap.report.records import Json, number
from rewardswap.report.tables import plain, words

CHANCE = 0.5
CHANCE_MARGIN = 0.05
"""How far from `CHANCE` an AUC at fixed turns still says nothing (ours)."""
HIGH_AUC = 0.75
"""From where a total AUC looks like a good process reward (ours)."""


@dataclass(frozen=True)
class TurnQuality:
    """How well partial sums of the process reward rank episodes that are live at a turn."""

    turn: int
    live: int | None
    auc: float | None
    auc_length_only: float | None


@dataclass(frozen=True)
class ProcessRewardQuality:
    """Whether the process reward knows more than how long an episode lasted."""

    auc_total: float | None
    auc_length_only: float | None
    turns: list[TurnQuality]
    other: list[tuple[str, str]]
    warnings: list[str]


def process_reward_quality(quality: Json | None) -> ProcessRewardQuality | None:
    """The table of the process reward model and what is to be said against it."""
    if quality is None:
        return None
    turns = []
    for row in quality.get("turns") or []:
        live = number(row.get("live"))
        turns.append(
            TurnQuality(
                turn=int(row["turn"]),
                live=None if live is None else int(live),
                auc=number(row.get("auc")),
                auc_length_only=number(row.get("auc_length_only")),
            )
        )
    total, length_only = number(quality.get("auc_total")), number(quality.get("auc_length_only"))
    shown = {"auc_total", "auc_length_only", "turns"}
    return ProcessRewardQuality(
        auc_total=total,
        auc_length_only=length_only,
        turns=turns,
        other=[(words(key), plain(value)) for key, value in quality.items() if key not in shown],
        warnings=_quality_warnings(total, length_only, turns),
    )


def mean_auc_at_fixed_turns(turns: list[TurnQuality]) -> float | None:
    """Mean over turns of the AUC among live episodes, weighted by how many were live."""
    known = [(row.auc, row.live or 0) for row in turns if row.auc is not None]
    weight = sum(live for _, live in known)
    return sum(auc * live for auc, live in known) / weight if weight else None


def _quality_warnings(
    total: float | None, length_only: float | None, turns: list[TurnQuality]
) -> list[str]:
    warnings: list[str] = []
    fixed = mean_auc_at_fixed_turns(turns)
    if total is None:
        return warnings
    if fixed is not None and total >= HIGH_AUC and abs(fixed - CHANCE) <= CHANCE_MARGIN:
        warnings.append(
            f"This process reward is a turn counter. Its total AUC of {total:.3f} looks good, but "
            f"among episodes that are still running at a given turn it ranks them like a coin "
            f"(mean AUC {fixed:.3f}): it has learned how long an episode lasts, not how it goes."
        )
    if length_only is not None and total <= length_only:
        warnings.append(
            f"The total AUC of {total:.3f} is no better than that of an episode's length alone "
            f"({length_only:.3f}); only the AUC at fixed turns tells whether it knows more."
        )
    return warnings
