"""ProGPO: Progress-conditioned Group Policy Optimization.

Paper: ProGPO, arXiv:2607.22724 (abstract, and a third party's implementation; the paper's body was
    not at hand).
Idea in one sentence: where all siblings fail, the one that saw more that was new did better.
Formula: if all outcomes of a group are 0: A_i = strength q (P_i - mean P) / (std P + 1e-8), P_i the
    share of turns whose observation is new in trajectory i, q the share of such groups; else
    GRPO's A_i.
Defaults from: strength .3 is the third party's.
Deviations: only groups whose returns in force are all equal fall back, so that under a dense
    reward its own advantages stand.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from rewardswap.algorithm import Algorithm
from rewardswap.choices import informative
from rewardswap.core.advantages import group_z_score, progpo
from rewardswap.methods.base import Method
from rewardswap.methods.credit import joined, parted
from rewardswap.types import Group, Trajectory


def novelty(trajectory: Trajectory) -> float:
    """Share of the turns after which the environment said what it had not said before."""
    texts = [*(turn.observation for turn in trajectory.turns), trajectory.final_observation]
    return (len(set(texts)) - 1) / len(trajectory.turns)


@dataclass(frozen=True)
class ProgressFallback:
    """GRPO's advantage, and progress in its place where a whole group failed."""

    strength: float = 0.3

    def __call__(self, groups: Sequence[Group]) -> list[Float[Tensor, "N K"]]:
        advantage, group = joined(groups, lambda g: group_z_score(g.returns))
        # a group that its reward in force tells apart has no need of the fallback
        outcome, _ = joined(groups, lambda g: g.outcomes + float(informative(g)))
        progress, _ = joined(groups, lambda g: torch.tensor([novelty(t) for t in g.trajectories]))
        return parted(progpo(advantage, outcome, progress, group, self.strength), groups)


@dataclass(frozen=True)
class ProGPO(Method):
    """ProGPO, arXiv:2607.22724."""

    rewards_suffice: ClassVar[bool] = False

    strength: float = 0.3
    """Largest weight of the fallback (third party: .3)."""

    def _check(self) -> None:
        super()._check()
        if not self.strength >= 0:
            raise ValueError(f"strength must be at least 0, got {self.strength}")

    def algorithm(self) -> Algorithm:
        """z-scores with the fallback, PPO's clip."""
        return self.compose(ProgressFallback(self.strength))
