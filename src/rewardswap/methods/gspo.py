"""GSPO: Group Sequence Policy Optimization.

Paper: GSPO, arXiv:2507.18071, Eq. 5-7, 14.
Idea in one sentence: reward is given to sequences, so the ratio and the clip are a sequence's.
Formula: s_i = (product of the token ratios of trajectory i)^(1 / tokens), clipped to
    1 - 3e-4 .. 1 + 4e-4, GRPO's A_i, every trajectory counts the same.
Defaults from: the paper's clip (§5.1) and average.
Deviations: a sequence is the whole trajectory, all turns of it (the paper has one turn). The
    replayed centre is the geometric mean of pi_old / pi_behavior over the same tokens (ours).
"""

from dataclasses import dataclass
from typing import Literal

from rewardswap.algorithm import Algorithm
from rewardswap.core.advantages import group_z_score
from rewardswap.methods.base import Method
from rewardswap.methods.credit import PerGroup


@dataclass(frozen=True)
class GSPO(Method):
    """GSPO, arXiv:2507.18071."""

    ratio: Literal["token", "turn", "trajectory"] = "trajectory"
    clip_low: float = 3e-4
    clip_high: float = 4e-4
    average: Literal["token", "turn", "trajectory", "constant"] = "trajectory"

    def algorithm(self) -> Algorithm:
        """z-scores inside the group, the sequence's ratio."""
        return self.compose(PerGroup(group_z_score))
