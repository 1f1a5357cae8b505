"""REINFORCE++: returns whitened over the whole batch.

Paper: REINFORCE++, arXiv:2501.03262, §3.
Idea in one sentence: the batch is the baseline, so neither siblings nor a critic are needed.
Formula: A_it = (G_it - mean) / (std + 1e-8), G_it = r_it + discount G_i,t+1 over turns; with
    `baseline group` G_it has the mean return of its group subtracted first (REINFORCE++-Baseline).
Defaults from: the paper's whitening and discount 1; the paper has the divergence in the reward
    (`kl_placement reward`), here it is off.
Deviations: mean and std count every trajectory once, however many turns and tokens it has (verl
    whitens over tokens); equal returns give exactly 0; replayed rows count in the statistics.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from rewardswap.algorithm import Algorithm
from rewardswap.core.advantages import EQUAL_TOLERANCE
from rewardswap.core.returns import discounted_returns
from rewardswap.methods.base import Method
from rewardswap.methods.credit import whitened
from rewardswap.types import Group


@dataclass(frozen=True)
class BatchWhitened:
    """Returns-to-go of turns, less the group's mean return if asked, whitened over the batch."""

    discount: float = 1.0
    subtract_group_mean: bool = False

    def __call__(self, groups: Sequence[Group]) -> list[Float[Tensor, "N K"]]:
        returns = [self._returns(group) for group in groups]
        return whitened(returns, groups, every_trajectory_once=True)

    def _returns(self, group: Group) -> Float[Tensor, "N K"]:
        mask = group.turn_mask
        returns = discounted_returns(group.reward_in_force.double(), mask, self.discount)
        if self.subtract_group_mean:
            rounding = EQUAL_TOLERANCE * group.returns.abs().max()
            returns = returns - group.returns.double().mean()
            returns = torch.where(returns.abs() > rounding, returns, torch.zeros_like(returns))
        return torch.where(mask, returns, torch.zeros_like(returns))


@dataclass(frozen=True)
class ReinforcePlusPlus(Method):
    """REINFORCE++: returns whitened over the whole batch."""

    needs_siblings = False

    baseline: Literal["batch", "group"] = "batch"
    """The batch alone, or the group's mean return first (REINFORCE++-Baseline)."""
    discount: float = 1.0
    """Discount of later turns' rewards."""

    def _check(self) -> None:
        super()._check()
        if not 0 <= self.discount <= 1:
            raise ValueError(f"discount must be in [0, 1], got {self.discount}")

    def algorithm(self) -> Algorithm:
        """Whitened returns, PPO's clip."""
        return self.compose(BatchWhitened(self.discount, self.baseline == "group"))


@dataclass(frozen=True)
class ReinforcePlusPlusBaseline(ReinforcePlusPlus):
    """REINFORCE++-Baseline: returns less their group's mean, whitened over the whole batch."""

    needs_siblings = True
    baseline: Literal["batch", "group"] = "group"
