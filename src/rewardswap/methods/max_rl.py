"""MaxRL: Maximum Likelihood Reinforcement Learning.

Paper: Maximum Likelihood Reinforcement Learning, arXiv:2602.02710.
Idea in one sentence: climbing the log of the chance to succeed, and not the chance, weighs a task
    by one over it, so that rare successes count more.
Formula: A_i = (R_i - mean(R)) / mean(R) for returns of at least 0; 0 where the mean is 0.
Defaults from: the authors' script: clip .2, no KL; token mean is ours.
Deviations: nothing is added to the mean below the line; equal returns give exactly 0. Returns below
    0 are an error, so under RSPO the explorer needs a credit of its own
    (`--swap.dense-credit reward_to_go`, ours).
"""

from dataclasses import dataclass
from typing import ClassVar

from rewardswap.algorithm import Algorithm
from rewardswap.core.advantages import mean_normalised
from rewardswap.methods.base import Method
from rewardswap.methods.credit import PerGroup


@dataclass(frozen=True)
class MaxRL(Method):
    """MaxRL, arXiv:2602.02710."""

    signed_returns: ClassVar[bool] = False

    def algorithm(self) -> Algorithm:
        """Centred returns over their mean, PPO's clip."""
        return self.compose(PerGroup(mean_normalised))
