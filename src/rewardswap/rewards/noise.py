"""Gaussian noise on any dense reward (arXiv:2607.04713, Table 5)."""

import hashlib
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from rewardswap.rewards.base import RewardSource
from rewardswap.types import Group, Trajectory


@dataclass(frozen=True)
class NoisyReward:
    """A reward source with independent noise on every turn; it has the source's name."""

    source: RewardSource
    deviation: float
    """Standard deviation sigma of the noise (paper: 0, 0.1, 0.3)."""
    seed: int

    @property
    def name(self) -> str:
        """The name of the source."""
        return self.source.name

    def score(self, group: Group) -> Float[Tensor, "N K"]:
        """r'_{i,t} = r_{i,t} + sigma e_{i,t} with e standard normal.

        The noise of a turn belongs to (seed, policy version, task, episode, turn), so it does not
        depend on which siblings are scored together.
        """
        reward = self.source.score(group).clone()
        for row, trajectory in zip(reward, group.trajectories, strict=True):
            count = len(trajectory.turns)
            row[:count] += self.deviation * _standard_normal(trajectory, self.seed)
        return reward


def _standard_normal(trajectory: Trajectory, seed: int) -> Float[Tensor, "K"]:
    """One draw per turn from a stream of the trajectory's own."""
    key = f"{seed} {trajectory.policy_version} {trajectory.task.id} {trajectory.index}"
    stream = int.from_bytes(hashlib.sha256(key.encode()).digest()[:16], "little")
    draws = np.random.Generator(np.random.Philox(key=stream)).standard_normal(len(trajectory.turns))
    return torch.from_numpy(draws.astype(np.float32))
