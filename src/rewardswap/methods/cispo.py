"""CISPO: Clipped Importance Sampling Policy Optimization.

Paper: MiniMax-M1, arXiv:2506.13585, Eq. 4-5.
Idea in one sentence: the clip bounds the weight of a token, never its gradient.
Formula: loss = -sg(clip(r, 1 - low, 1 + high)) A log pi.
Defaults from: GRPO's A_i and the token mean are the paper's; it has no lower bound and does not
    publish the upper one: clip .2 on both sides is ours.
Deviations: the weight of replayed rows is q, held around its centre pi_old / pi_behavior (ours).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Bool, Float
from torch import Tensor

from rewardswap.algorithm import Algorithm
from rewardswap.core.advantages import group_z_score
from rewardswap.core.surrogates import cispo
from rewardswap.methods.base import Method
from rewardswap.methods.credit import PerGroup
from rewardswap.seams import TokenRatios


@dataclass(frozen=True)
class ClippedWeight:
    """-sg(clip(q)) A log pi; a held weight is counted, its token keeps its gradient."""

    def __call__(self, tokens: TokenRatios) -> Float[Tensor, "B T"]:
        t = tokens
        return cispo(t.logprob, t.ratio, t.lower, t.upper, t.advantage)

    def held(self, tokens: TokenRatios) -> Mapping[str, Bool[Tensor, "B T"]]:
        """Tokens whose weight is held, below and above."""
        return {
            "clip_low_share": tokens.ratio < tokens.lower,
            "clip_high_share": tokens.ratio > tokens.upper,
        }


@dataclass(frozen=True)
class CISPO(Method):
    """CISPO, arXiv:2506.13585."""

    idle: ClassVar[frozenset[str]] = frozenset({"dual_clip"})

    def algorithm(self) -> Algorithm:
        """z-scores inside the group, clipped weights."""
        return self.compose(PerGroup(group_z_score), surrogate=ClippedWeight())
