"""GDPO: Group reward-Decoupled Normalization Policy Optimization.

Paper: GDPO, arXiv:2601.05242.
Idea in one sentence: several rewards are normalised one by one before they are added, so that no
    combination of them is lost.
Formula: z_r,i = (R_r,i - mean) / (std + 1e-4) in the group for each reward r;
    s_i = sum_r w_r z_r,i; A_i = (s_i - mean s) / (std s + 1e-4) over the batch.
Defaults from: the authors' code: w = 1, whitening per trajectory; here the second reward, valid
    actions, weighs .1 (ours).
Deviations: the first reward is the one in force (outcome, or dense while exploring), the others are
    read from the trajectories themselves. Whitening is skipped below a standard deviation of 1e-3;
    replayed rows count in the batch's statistics.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from rewardswap.algorithm import Algorithm
from rewardswap.core.advantages import group_z_score
from rewardswap.methods.base import Method
from rewardswap.methods.credit import at_turns, whitened
from rewardswap.types import Group

EPSILON, LEAST_STD = 1e-4, 1e-3


def in_force(group: Group) -> Float[Tensor, "N"]:
    """The return under the reward in force."""
    return group.returns


def valid_actions(group: Group) -> Float[Tensor, "N"]:
    """Share of the turns whose action the environment admitted."""
    return torch.tensor(
        [sum(turn.valid for turn in t.turns) / len(t.turns) for t in group.trajectories]
    )


def brevity(group: Group) -> Float[Tensor, "N"]:
    """Minus the number of turns."""
    return torch.tensor([-float(len(t.turns)) for t in group.trajectories])


REWARDS: Mapping[str, Callable[[Group], Tensor]] = {
    "in_force": in_force,
    "valid_actions": valid_actions,
    "brevity": brevity,
}
"""Rewards by name, one number per trajectory."""


@dataclass(frozen=True)
class DecoupledNormalisation:
    """Weighted sum of each reward's z-scores, whitened over the batch."""

    weights: Mapping[str, float]

    def __call__(self, groups: Sequence[Group]) -> list[Float[Tensor, "N K"]]:
        scores = [at_turns(self._score(group), group) for group in groups]
        return whitened(
            scores, groups, every_trajectory_once=True, epsilon=EPSILON, least_std=LEAST_STD
        )

    def _score(self, group: Group) -> Float[Tensor, "N"]:
        score = torch.zeros(len(group.trajectories))
        for name, weight in self.weights.items():
            score = score + weight * group_z_score(REWARDS[name](group), EPSILON)
        return score


@dataclass(frozen=True)
class GDPO(Method):
    """GDPO, arXiv:2601.05242."""

    rewards_suffice: ClassVar[bool] = False

    rewards: tuple[str, ...] = ("in_force", "valid_actions")
    """Names of the rewards; the first must be in_force."""
    weights: tuple[float, ...] = (1.0, 0.1)
    """Weight of each reward's z-scores."""

    def _check(self) -> None:
        super()._check()
        unknown = [name for name in self.rewards if name not in REWARDS]
        if unknown:
            raise ValueError(f"unknown reward {unknown[0]!r}; known: {', '.join(REWARDS)}")
        if len(set(self.rewards)) != len(self.rewards) or "in_force" not in self.rewards:
            raise ValueError(f"rewards must be distinct and hold in_force, got {self.rewards}")
        if len(self.weights) != len(self.rewards):
            raise ValueError(
                f"{len(self.rewards)} rewards need as many weights, got {len(self.weights)}"
            )

    def algorithm(self) -> Algorithm:
        """Decoupled z-scores, PPO's clip."""
        weights = dict(zip(self.rewards, self.weights, strict=True))
        return self.compose(DecoupledNormalisation(weights))
