"""The rule-based process reward: what the environment itself says of each turn."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from rewardswap.types import Group


@dataclass(frozen=True, slots=True)
class ProgressReward:
    """The environment's own reward of each turn: the difference of its progress potential."""

    name: str = "progress"

    def score(self, group: Group) -> Float[Tensor, "N K"]:
        """r_{i,t} = Phi(after turn t) - Phi(before turn t), as the rollout stored it.

        Differences of a potential (Ng et al. 1999) telescope: a row sums to the progress at the
        end of the trajectory less that at its start, whatever detours lie between.
        """
        reward = torch.zeros(len(group.trajectories), group.turn_count)
        for n, trajectory in enumerate(group.trajectories):
            for k, turn in enumerate(trajectory.turns):
                reward[n, k] = turn.reward
        return reward
