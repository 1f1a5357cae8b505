"""A rule-based reward that can be hacked: progress is paid, its loss is not charged (ours)."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from rewardswap.rewards.rule import ProgressReward
from rewardswap.types import Group


@dataclass(frozen=True, slots=True)
class ProgressGains:
    """The environment's progress reward without its negative turns: undoing and redoing pays."""

    name: str = "progress_gains"

    def score(self, group: Group) -> Float[Tensor, "N K"]:
        """r_{i,t} = max(0, Phi(after turn t) - Phi(before turn t)), which does not telescope."""
        return ProgressReward().score(group).clamp(min=0.0)
