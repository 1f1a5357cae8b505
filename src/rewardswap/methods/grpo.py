"""GRPO: Group Relative Policy Optimization.

Paper: DeepSeekMath, arXiv:2402.03300, §4.1.2.
Idea in one sentence: the siblings of a group are each other's baseline, so no critic is needed.
Formula: A_i = (R_i - mean(R)) / (std(R) + 1e-6) for every token of trajectory i.
Defaults from: the paper's clip .2; token mean and no KL are ours (the paper averages within each
    trajectory first and uses KL .04).
Deviations: statistics count every trajectory once, however many turns it has (verl-agent counts
    rows, so that long trajectories weigh more); equal returns give exactly 0.
"""

from dataclasses import dataclass

from rewardswap.algorithm import Algorithm
from rewardswap.core.advantages import group_z_score
from rewardswap.methods.base import Method
from rewardswap.methods.credit import PerGroup


@dataclass(frozen=True)
class GRPO(Method):
    """GRPO, arXiv:2402.03300."""

    def algorithm(self) -> Algorithm:
        """z-scores inside the group, PPO's clip."""
        return self.compose(PerGroup(group_z_score))
