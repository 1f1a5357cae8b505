"""DPPO: Divergence Proximal Policy Optimization.

Paper: Rethinking the Trust Region in LLM Reinforcement Learning, arXiv:2602.04879.
Idea in one sentence: how far a token's probability moved bounds the step, not its ratio, so rare
    tokens may rise and frequent ones are held in time.
Formula: loss = -sg(r) A log pi where pi - pi_old <= high (A > 0) or pi - pi_old >= -low (A <= 0),
    else 0; in the form `kl` the binary KL(pi_old || pi) of the token is bounded instead.
Defaults from: GRPO's A_i and thresholds .2 are verl's; so is no cap on the ratio.
Deviations: on replayed rows the gradient is that of q = pi / pi_behavior, the bound stays one of
    pi against pi_old (ours).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from rewardswap.algorithm import Algorithm
from rewardswap.core.advantages import group_z_score
from rewardswap.core.surrogates import dppo_kl, dppo_tv
from rewardswap.methods.base import Method
from rewardswap.methods.credit import PerGroup
from rewardswap.seams import TokenRatios


@dataclass(frozen=True)
class ProbabilityBound:
    """-sg(q) A log pi inside the bound, nothing outside it."""

    low: float
    high: float
    divergence: Literal["total_variation", "kl"]
    ratio_maximum: float | None

    def __call__(self, tokens: TokenRatios) -> Float[Tensor, "B T"]:
        t = tokens
        surrogate = dppo_tv if self.divergence == "total_variation" else dppo_kl
        cap = math.inf if self.ratio_maximum is None else self.ratio_maximum
        return surrogate(
            t.ratio,
            t.logprob,
            t.old_logprob,
            t.advantage,
            low=self.low,
            high=self.high,
            ratio_cap=cap,
        )

    def held(self, tokens: TokenRatios) -> Mapping[str, Bool[Tensor, "B T"]]:
        """Tokens outside the bound: their loss is 0 for any log-prob but 0 itself."""
        silent = (self(tokens) == 0) & (tokens.advantage != 0) & (tokens.logprob != 0)
        shares = {
            "clip_low_share": silent & (tokens.advantage < 0),
            "clip_high_share": silent & (tokens.advantage > 0),
        }
        if self.ratio_maximum is not None:
            shares["ratio_capped_share"] = tokens.ratio > torch.tensor(self.ratio_maximum)
        return shares


@dataclass(frozen=True)
class DPPO(Method):
    """DPPO, arXiv:2602.04879."""

    idle: ClassVar[frozenset[str]] = frozenset(
        {"dual_clip", "clip_window", "clip_center", "replay_clip_low", "replay_clip_high"}
    )

    divergence: Literal["total_variation", "kl"] = "total_variation"
    """What is bounded: the change of the token's probability, or its binary KL in nats."""
    ratio_maximum: float | None = None
    """Largest ratio in the gradient (a truncation of verl's); none: no cap."""

    def _check(self) -> None:
        super()._check()
        if self.ratio_maximum is not None and self.ratio_maximum < 1:
            raise ValueError(f"ratio_maximum must be at least 1, got {self.ratio_maximum}")

    def algorithm(self) -> Algorithm:
        """z-scores inside the group, probabilities bounded."""
        bound = ProbabilityBound(self.clip_low, self.clip_high, self.divergence, self.ratio_maximum)
        return self.compose(PerGroup(group_z_score), surrogate=bound)
