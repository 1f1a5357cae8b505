"""The outcome reward: sparse and exact."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from rewardswap.types import Group


@dataclass(frozen=True, slots=True)
class OutcomeReward:
    """The outcome of a trajectory on its last turn, 0 on all turns before it."""

    name: str = "outcome"

    def score(self, group: Group) -> Float[Tensor, "N K"]:
        """r_{i,t} = R_i if t is trajectory i's last turn, else 0; rows sum to R_i."""
        reward = torch.zeros(len(group.trajectories), group.turn_count)
        for n, trajectory in enumerate(group.trajectories):
            reward[n, len(trajectory.turns) - 1] = trajectory.outcome
        return reward
