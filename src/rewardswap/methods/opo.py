"""OPO: On-Policy RL with Optimal reward baseline.

Paper: On-Policy RL with Optimal Reward Baseline, arXiv:2505.23585, §3.
Idea in one sentence: the baseline of least variance weighs returns by the length of trajectories.
Formula: A_i = R_i - sum_j l_j R_j / sum_j l_j, l in action tokens.
Defaults from: no clip is the paper's (exactly on policy); clip .2 is ours.
Deviations: the clip, which is what lets RSPO wrap it and several minibatches be taken.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from rewardswap.algorithm import Algorithm
from rewardswap.core.advantages import optimal_baseline
from rewardswap.methods.base import Method
from rewardswap.methods.credit import at_turns
from rewardswap.types import Group


def length_weighted_advantage(groups: Sequence[Group]) -> list[Float[Tensor, "N K"]]:
    """A_i of the trajectory at each of its turns; lengths are all its action tokens."""
    advantages = []
    for group in groups:
        lengths = torch.tensor([float(t.action_token_count) for t in group.trajectories])
        advantages.append(at_turns(optimal_baseline(group.returns, lengths), group))
    return advantages


@dataclass(frozen=True)
class OPO(Method):
    """OPO, arXiv:2505.23585."""

    def algorithm(self) -> Algorithm:
        """Returns less the length-weighted baseline, PPO's clip."""
        return self.compose(length_weighted_advantage)
