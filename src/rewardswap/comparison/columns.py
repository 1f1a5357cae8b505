"""The columns of metrics.jsonl that a result keeps, few enough to stay a line of some kilobytes."""

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any

from rewardswap.report.series import dense_reward_key

DIGITS = 5
"""Significant digits of a kept number."""

LEARN = (
    "update",
    "environment_steps",
    "generated_tokens",
    "seconds",
    "success",
    "effective_sample_size",
    "entropy",
    "clip_low_share",
    "clip_high_share",
    "turns_mean",
    "invalid_rate",
    "repeated_states",
    "edit_distance",
    "planted_share",
)
"""Of the agent's updates."""
EXPLORE = ("update", "environment_steps", "success", "repeated_states", "planted_share")
"""Of the explorer's updates."""
HARVEST = ("update", "success", "repeated_states", "planted_share")
"""Of the explorer after its updates."""
LOOP = ("update", "explorer_kl", "replay_success_share", "replay_edit_distance")
"""Of the rows that close an exploration."""


def curves(metrics: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, list[Any]]]:
    """Columns by phase: learn, explore, harvest, and loop for what is known once in a loop.

    A column that no row of a phase has is left out; a value that is missing or not finite is None.
    The dense reward of any name, in reward a trajectory, is the column `dense`.
    """
    rows = list(metrics)
    kept = {"learn": LEARN, "explore": EXPLORE, "harvest": HARVEST}
    return {
        **{p: _columns([row for row in rows if row["phase"] == p], kept[p]) for p in kept},
        "loop": _columns([row for row in rows if "explorer_kl" in row], LOOP),
    }


def _columns(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, list[Any]]:
    dense = {key for row in rows if (key := dense_reward_key(row)) is not None}
    if len(dense) > 1:
        raise ValueError(
            f"metrics.jsonl has more than one dense reward: {', '.join(sorted(dense))}"
        )
    kept = [(name, name) for name in names] + [("dense", name) for name in dense]
    return {
        short: [rounded(row.get(name)) for row in rows]
        for short, name in kept
        if any(name in row for row in rows)
    }


def rounded(value: Any) -> Any:
    """Numbers to 5 significant digits, counts as they are, None where not finite; in tables too."""
    if isinstance(value, Mapping):
        return {name: rounded(part) for name, part in value.items()}
    if not isinstance(value, float):
        return value
    if not isfinite(value):
        return None
    return int(value) if value.is_integer() else float(f"{value:.{DIGITS}g}")
