"""RLOO: REINFORCE Leave-One-Out.

Paper: Back to Basics, arXiv:2402.14740, §3.
Idea in one sentence: the other siblings' mean is a baseline that does not know the own return.
Formula: A_i = R_i - mean of R_j over j != i.
Defaults from: none of the paper's: it takes one step without a clip; the clip .2 is PPO's, as
    verl-agent has it.
Deviations: the clip, which is what lets RSPO wrap it.
"""

from dataclasses import dataclass

from rewardswap.algorithm import Algorithm
from rewardswap.core.advantages import leave_one_out
from rewardswap.methods.base import Method
from rewardswap.methods.credit import PerGroup


@dataclass(frozen=True)
class RLOO(Method):
    """RLOO, arXiv:2402.14740."""

    def algorithm(self) -> Algorithm:
        """Leave-one-out returns, PPO's clip."""
        return self.compose(PerGroup(leave_one_out))
