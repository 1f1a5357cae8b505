"""Dense rewards that say nothing of the task: the controls that any claim must face (ours)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from rewardswap.types import Group


@dataclass(frozen=True, slots=True)
class ConstantReward:
    """The same for every trajectory: 1 on its last turn."""

    name: str = "constant"

    def score(self, group: Group) -> Float[Tensor, "N K"]:
        """r_{i,t} = 1 if t is trajectory i's last turn, else 0; credited as a sum it teaches
        nothing, and the explorer differs from the agent by weight decay alone."""
        mask = group.turn_mask
        reward = torch.zeros(mask.shape)
        reward[torch.arange(len(mask)), mask.sum(dim=1) - 1] = 1.0
        return reward


@dataclass(frozen=True, slots=True)
class TurnCounter:
    """Minus a share for every turn: what a process reward model knows that only counts turns."""

    turn_limit: int
    name: str = "turn_counter"

    def score(self, group: Group) -> Float[Tensor, "N K"]:
        """r_{i,t} = -1 / turn_limit, so that a row sums to -T_i / turn_limit."""
        return -group.turn_mask.float() / self.turn_limit


@dataclass(frozen=True, slots=True)
class SilentReward:
    """0 everywhere; with `reward.noise` it is nothing but noise."""

    name: str = "noise"

    def score(self, group: Group) -> Float[Tensor, "N K"]:
        """r_{i,t} = 0."""
        return torch.zeros(group.turn_mask.shape)
