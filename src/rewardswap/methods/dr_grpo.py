"""Dr.GRPO: GRPO done right.

Paper: Understanding R1-Zero-Like Training, arXiv:2503.20783, §3.2.
Idea in one sentence: neither the group's standard deviation nor a trajectory's own length may
    scale its gradient.
Formula: A_i = R_i - mean(R); every token weighs 1 / (trajectories x a constant length).
Defaults from: the paper's average (its constant is the generation budget) and clip .2.
Deviations: the constant is 512 tokens of a trajectory; set it to your own budget.
"""

from dataclasses import dataclass
from typing import Literal

from rewardswap.algorithm import Algorithm
from rewardswap.core.advantages import group_centered
from rewardswap.methods.base import Method
from rewardswap.methods.credit import PerGroup


@dataclass(frozen=True)
class DrGRPO(Method):
    """Dr.GRPO, arXiv:2503.20783."""

    average: Literal["token", "turn", "trajectory", "constant"] = "constant"

    def algorithm(self) -> Algorithm:
        """Centred returns, a constant length."""
        return self.compose(PerGroup(group_centered))
