"""GiGPO: Group-in-Group Policy Optimization.

Paper: GiGPO, arXiv:2505.10978, Eq. 3-8.
Idea in one sentence: turns that siblings took in the same state are a group of their own.
Formula: A_it = A_i + w A_it^S, A_i = F(R_i in its group), A_it^S = F(G_it among the turns of the
    group with the same anchor), G_it = r_it + discount G_i,t+1, F(x) = (x - mean) / (std + 1e-6),
    or x - mean (`normalisation mean`, the paper's F_norm = 1).
Defaults from: the paper's w 1 and discount .95; its scripts divide by the standard deviation on
    ALFWorld and not on WebShop.
Deviations: episode statistics count every trajectory once (verl-agent counts rows); equal values
    give exactly 0. Under a dense reward the turn rewards enter G and their sum is R (the literal
    reading). Replayed rows keep both parts of their full group: the siblings that selection left
    out carry the anchors (ours).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from rewardswap.algorithm import Algorithm
from rewardswap.core.advantages import by_anchor, group_centered, group_z_score
from rewardswap.core.anchors import anchor_ids, similar_anchor_ids
from rewardswap.core.returns import discounted_returns
from rewardswap.methods.base import Method
from rewardswap.methods.credit import at_turns
from rewardswap.types import Group

Anchor = Literal["state", "observation", "similar_observation"]


@dataclass(frozen=True)
class GroupInGroup:
    """The episode's advantage and w times the step's."""

    step_weight: float = 1.0
    discount: float = 0.95
    divide_by_std: bool = True
    anchor: Anchor = "state"
    similarity: float = 0.95

    def __call__(self, groups: Sequence[Group]) -> list[Float[Tensor, "N K"]]:
        return [self._advantage(group) for group in groups]

    def _advantage(self, group: Group) -> Float[Tensor, "N K"]:
        estimate = group_z_score if self.divide_by_std else group_centered
        episode = at_turns(estimate(group.returns), group)
        mask = group.turn_mask
        returns = discounted_returns(group.reward_in_force.double(), mask, self.discount)
        step = by_anchor(returns, self.anchors(group), mask, divide_by_std=self.divide_by_std)
        return episode + self.step_weight * step.float()

    def anchors(self, group: Group) -> Int[Tensor, "N K"]:
        """Equal numbers for turns that were taken in the same state; -1 where there is none."""
        turns = [turn for trajectory in group.trajectories for turn in trajectory.turns]
        tasks = [group.task.id] * len(turns)
        if self.anchor == "state":
            ids = anchor_ids(tasks, [turn.state_key for turn in turns])
        elif self.anchor == "observation":
            ids = anchor_ids(tasks, [turn.observation for turn in turns])
        else:
            ids = similar_anchor_ids(tasks, [turn.observation for turn in turns], self.similarity)
        placed = torch.full(group.turn_mask.shape, -1)
        placed[group.turn_mask] = ids
        return placed


@dataclass(frozen=True)
class GiGPO(Method):
    """GiGPO, arXiv:2505.10978."""

    rewards_suffice: ClassVar[bool] = False

    step_weight: float = 1.0
    """w of the step advantage (paper: 1)."""
    discount: float = 0.95
    """Discount of later turns' rewards in the step return (paper: .95)."""
    normalisation: Literal["std", "mean"] = "std"
    """Divide by the standard deviation (paper: ALFWorld) or only centre (paper: WebShop)."""
    anchor: Anchor = "state"
    """Equal keys of the environment's state (ours), equal observation texts (verl-agent), or
    observation texts that resemble each other (verl-agent's option)."""
    similarity: float = 0.95
    """Least matching-blocks ratio of similar observations."""

    def _check(self) -> None:
        super()._check()
        if not 0 <= self.discount <= 1:
            raise ValueError(f"discount must be in [0, 1], got {self.discount}")
        if not self.step_weight >= 0:
            raise ValueError(f"step_weight must be at least 0, got {self.step_weight}")
        if self.anchor != "similar_observation" and self.similarity != 0.95:
            raise ValueError(f"similarity does nothing with anchor {self.anchor}")
        if not 0 < self.similarity < 1:
            raise ValueError(f"similarity must be inside (0, 1), got {self.similarity}")

    def algorithm(self) -> Algorithm:
        """Episode and step advantages, PPO's clip."""
        return self.compose(
            GroupInGroup(
                self.step_weight,
                self.discount,
                self.normalisation == "std",
                self.anchor,
                self.similarity,
            )
        )
