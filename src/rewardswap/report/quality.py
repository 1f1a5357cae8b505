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
    auc_within_task: float | None
    auc_length_only: float | None


@dataclass(frozen=True)
class ProcessRewardQuality:
    """Whether the process reward knows more than how long an episode lasted."""

    auc_total: float | None
    auc_within_task: float | None
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
                auc_within_task=number(row.get("auc_within_task")),
                auc_length_only=number(row.get("auc_length_only")),
            )
        )
    total, length_only = number(quality.get("auc_total")), number(quality.get("auc_length_only"))
    shown = {"auc_total", "auc_within_task", "auc_length_only", "turns", "warning"}
    shown |= {"calibration", "families", "probes"}  # tables of `prm eval`
    return ProcessRewardQuality(
        auc_total=total,
        auc_within_task=number(quality.get("auc_within_task")),
        auc_length_only=length_only,
        turns=turns,
        other=[(words(key), plain(value)) for key, value in quality.items() if key not in shown],
        warnings=_warnings(quality, turns),
    )


def mean_auc_at_fixed_turns(turns: list[TurnQuality]) -> float | None:
    """Mean over turns of the AUC among live episodes, weighted by how many were live."""
    known = [(row.auc, row.live or 0) for row in turns if row.auc is not None]
    weight = sum(live for _, live in known)
    return sum(auc * live for auc, live in known) / weight if weight else None


def _warnings(quality: Json, turns: list[TurnQuality]) -> list[str]:
    """What the model's own examination warned of, else our own; and whether length does as well."""
    total, length_only = number(quality.get("auc_total")), number(quality.get("auc_length_only"))
    own = quality["warning"] if "warning" in quality else _turn_counter(total, turns)
    warnings = [str(own)] if own else []
    if total is not None and length_only is not None and total <= length_only:
        warnings.append(
            f"The total AUC of {total:.3f} is no better than that of an episode's length alone "
            f"({length_only:.3f}); only the AUC at fixed turns tells whether it knows more."
        )
    return warnings


def _turn_counter(total: float | None, turns: list[TurnQuality]) -> str | None:
    fixed = mean_auc_at_fixed_turns(turns)
    if total is None or fixed is None:
        return None
    if total < HIGH_AUC or abs(fixed - CHANCE) > CHANCE_MARGIN:
        return None
    return (
        f"This process reward is a turn counter. Its total AUC of {total:.3f} looks good, but "
        f"among episodes that are still running at a given turn it ranks them like a coin "
        f"(mean AUC {fixed:.3f}): it has learned how long an episode lasts, not how it goes."
    )
