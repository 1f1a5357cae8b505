"""DAPO: Decoupled Clip and Dynamic Sampling Policy Optimization.

Paper: DAPO, arXiv:2503.14476, §3.
Idea in one sentence: leave rare tokens room to rise, and train on groups that teach something.
Formula: GRPO's A_i; r clipped to 1 - .2 .. 1 + .28; every token counts the same; groups whose
    returns are all equal are left out and others are collected in their place.
Defaults from: the paper's clip and average; ten collections at most are verl-agent's.
Deviations: just as many tasks are collected again as groups are missing, where verl-agent collects
    whole batches and DAPO throws the surplus away. What is missing after the last collection is
    counted (`missing_groups`), and a run without any group stops. The filter reads the reward in
    force: under a dense reward hardly any group is left out.
"""

from dataclasses import dataclass

from rewardswap.algorithm import Algorithm
from rewardswap.choices import informative
from rewardswap.core.advantages import group_z_score
from rewardswap.methods.base import Method
from rewardswap.methods.credit import PerGroup


@dataclass(frozen=True)
class DAPO(Method):
    """DAPO, arXiv:2503.14476."""

    clip_high: float = 0.28
    collections: int = 10
    """Most collections of one update (verl-agent: 10)."""

    def _check(self) -> None:
        super()._check()
        if self.collections < 1:
            raise ValueError(f"collections must be at least 1, got {self.collections}")

    def algorithm(self) -> Algorithm:
        """z-scores inside informative groups, the higher clip."""
        return self.compose(PerGroup(group_z_score), keep=informative, collections=self.collections)
