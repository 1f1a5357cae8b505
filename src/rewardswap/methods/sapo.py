"""SAPO: Soft Adaptive Policy Optimization.

Paper: SAPO, arXiv:2511.20347.
Idea in one sentence: a smooth gate lets a token fade out where a clip would cut it off.
Formula: loss = -(4 / tau) sigmoid(tau (r - 1)) A, tau by the sign of A.
Defaults from: the paper's temperatures 1.0 (A > 0) and 1.05 (A <= 0), its trajectory mean.
Deviations: replayed rows have their gate at r = pi_old / pi_behavior in place of 1 (ours).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from jaxtyping import Bool, Float
from torch import Tensor

from rewardswap.algorithm import Algorithm
from rewardswap.core.advantages import group_z_score
from rewardswap.core.surrogates import sapo
from rewardswap.methods.base import Method
from rewardswap.methods.credit import PerGroup
from rewardswap.seams import TokenRatios


@dataclass(frozen=True)
class SoftGate:
    """-(4 / tau) sigmoid(tau (q - c)) A: nothing is cut off."""

    positive: float
    negative: float

    def __call__(self, tokens: TokenRatios) -> Float[Tensor, "B T"]:
        return sapo(
            tokens.ratio,
            tokens.center,
            tokens.advantage,
            temperature_positive=self.positive,
            temperature_negative=self.negative,
        )

    def held(self, tokens: TokenRatios) -> Mapping[str, Bool[Tensor, "B T"]]:
        """Nothing is held."""
        return {}


@dataclass(frozen=True)
class SAPO(Method):
    """SAPO, arXiv:2511.20347."""

    idle: ClassVar[frozenset[str]] = frozenset(
        {
            "clip_low",
            "clip_high",
            "replay_clip_low",
            "replay_clip_high",
            "clip_window",
            "clip_center",
            "dual_clip",
        }
    )

    average: Literal["token", "turn", "trajectory", "constant"] = "trajectory"
    temperature_positive: float = 1.0
    """Steepness of the gate where A > 0, per unit of ratio."""
    temperature_negative: float = 1.05
    """Steepness of the gate where A <= 0, per unit of ratio."""

    def _check(self) -> None:
        super()._check()
        for name in ("temperature_positive", "temperature_negative"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)}")

    def algorithm(self) -> Algorithm:
        """z-scores inside the group, the soft gate."""
        gate = SoftGate(self.temperature_positive, self.temperature_negative)
        return self.compose(PerGroup(group_z_score), surrogate=gate)
