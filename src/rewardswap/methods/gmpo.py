"""GMPO: Geometric-Mean Policy Optimization.

Paper: GMPO, arXiv:2507.20673.
Idea in one sentence: the geometric mean of a trajectory's ratios is deaf to single outliers.
Formula: loss = -A_i (product of clipped token ratios)^(1 / tokens), log r clipped to -.4 .. .4 on
    the side that the sign of A asks for.
Defaults from: the paper's clip of .4 in the exponent, every trajectory counts the same.
Deviations: a sequence is the whole trajectory, all turns of it; the clip of replayed rows is
    centred at log pi_old / pi_behavior (ours).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from jaxtyping import Bool, Float
from torch import Tensor

from rewardswap.algorithm import Algorithm
from rewardswap.core.advantages import group_z_score
from rewardswap.core.surrogates import gmpo
from rewardswap.methods.base import Method
from rewardswap.methods.credit import PerGroup
from rewardswap.seams import TokenRatios


@dataclass(frozen=True)
class GeometricMean:
    """-A times the geometric mean of the clipped ratios, at every token of a trajectory."""

    def __call__(self, tokens: TokenRatios) -> Float[Tensor, "B T"]:
        t = tokens
        return gmpo(
            t.log_ratio + t.center.log(),
            t.lower.log(),
            t.upper.log(),
            t.advantage,
            t.mask,
            t.trajectory,
        )

    def held(self, tokens: TokenRatios) -> Mapping[str, Bool[Tensor, "B T"]]:
        """Tokens whose ratio is replaced by a bound: no gradient of their own."""
        t = tokens
        return {
            "clip_low_share": (t.ratio < t.lower) & (t.advantage < 0),
            "clip_high_share": (t.ratio > t.upper) & (t.advantage > 0),
        }


@dataclass(frozen=True)
class GMPO(Method):
    """GMPO, arXiv:2507.20673."""

    idle: ClassVar[frozenset[str]] = frozenset({"dual_clip", "ratio"})

    clip_low: float = 0.4
    clip_high: float = 0.4
    clip_window: Literal["additive", "multiplicative", "logarithmic"] = "logarithmic"
    average: Literal["token", "turn", "trajectory", "constant"] = "trajectory"

    def _check(self) -> None:
        super()._check()
        if self.importance_cap == "mask":
            raise ValueError(
                "importance_cap mask would drop whole trajectories from a geometric mean; use "
                "truncate"
            )

    def algorithm(self) -> Algorithm:
        """z-scores inside the group, geometric means."""
        return self.compose(
            PerGroup(group_z_score), surrogate=GeometricMean(), whole_trajectories=True
        )
