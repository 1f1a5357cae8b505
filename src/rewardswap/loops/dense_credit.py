"""Turn-level credit of a dense reward, for methods that credit whole trajectories."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from rewardswap.core.advantages import group_z_score
from rewardswap.core.returns import discounted_returns
from rewardswap.types import Group


@dataclass(frozen=True)
class RewardToGo:
    """A_it = z-score of G_it = r_it + discount G_i,t+1 among all turns of the group (ours)."""

    discount: float = 0.9

    def __call__(self, groups: Sequence[Group]) -> list[Float[Tensor, "N K"]]:
        advantages = []
        for group in groups:
            mask = group.turn_mask
            returns = discounted_returns(group.reward_in_force, mask, self.discount)
            advantage = torch.zeros_like(returns)
            advantage[mask] = group_z_score(returns[mask])
            advantages.append(advantage)
        return advantages
