"""SoftmaxGRPO: the softmax of the returns as advantage.

Paper: SoftmaxGRPO, arXiv:2608.09271.
Idea in one sentence: between the mean and the best return, so that a lone success counts more.
Formula: A_i = N softmax(R / temperature)_i - 1.
Defaults from: the authors' code: temperature .3, clip .2 / .28, token mean; no KL is ours (theirs
    is .001).
Deviations: none. Not scale-invariant: the temperature is in units of the return.
"""

from dataclasses import dataclass
from functools import partial

from rewardswap.algorithm import Algorithm
from rewardswap.core.advantages import softmax_advantage
from rewardswap.methods.base import Method
from rewardswap.methods.credit import PerGroup


@dataclass(frozen=True)
class SoftmaxGRPO(Method):
    """SoftmaxGRPO, arXiv:2608.09271."""

    clip_high: float = 0.28
    temperature: float = 0.3
    """Of the softmax over returns, in units of the return."""

    def _check(self) -> None:
        super()._check()
        if not self.temperature > 0:
            raise ValueError(f"temperature must be above 0, got {self.temperature}")

    def algorithm(self) -> Algorithm:
        """Softmax advantages, PPO's clip."""
        estimate = partial(softmax_advantage, temperature=self.temperature)
        return self.compose(PerGroup(estimate))
