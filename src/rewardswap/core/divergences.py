"""Per-token estimators of KL(π ‖ π_reference) from x = log π - log π_reference.

Schulman's k1, k2, k3 (http://joschu.net/blog/kl-approx.html): unbiased (k1, k3) for tokens sampled
from π itself. Take x from `ratios.log_ratio`, which is 0 off the mask.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

EXPONENT_LIMIT = 20.0
"""Exponents are held within ±20: e^20 is far above any limit on k3, and never overflows."""


def k1(log_ratio: Float[Tensor, "*places"]) -> Float[Tensor, "*places"]:
    """x: unbiased, signed; as a loss its expected gradient is zero, so use it in rewards only."""
    return log_ratio


def absolute(log_ratio: Float[Tensor, "*places"]) -> Float[Tensor, "*places"]:
    """|x| (verl-agent's `abs`): a distance, not an estimate of the KL."""
    return log_ratio.abs()


def k2(log_ratio: Float[Tensor, "*places"]) -> Float[Tensor, "*places"]:
    """x²/2: biased in value; its expected gradient is that of the KL on policy."""
    return log_ratio.square() / 2


def k3(log_ratio: Float[Tensor, "*places"], limit: float = 10.0) -> Float[Tensor, "*places"]:
    """e^(-x) + x - 1, at most `limit` (GRPO, arXiv:2402.03300, Eq. 4; the limit is verl-agent's).

    Non-negative, zero gradient where the limit holds it (`k3_limited` counts these places). On
    tokens of another policy than π it is not an unbiased KL.
    """
    exponent = (-log_ratio).clamp(-EXPONENT_LIMIT, EXPONENT_LIMIT)
    return (exponent.exp() - exponent - 1).clamp(max=limit)


def k3_limited(log_ratio: Float[Tensor, "B T"], limit: float = 10.0) -> Bool[Tensor, "B T"]:
    """Where `k3` is held at its limit and so pulls no more."""
    return k3(log_ratio.detach(), float("inf")) > limit


def penalised_reward(
    reward: Float[Tensor, "B T"], log_ratio: Float[Tensor, "B T"], coefficient: float
) -> Float[Tensor, "B T"]:
    """r - coefficient · k1: the KL as a reward of each token (InstructGPT, arXiv:2203.02155)."""
    return reward - coefficient * k1(log_ratio)


def entropy(logits: Float[Tensor, "B T V"]) -> Float[Tensor, "B T"]:
    """H(π) = logsumexp(z) - Σ_v π_v z_v of each place, in nats."""
    return torch.logsumexp(logits, dim=-1) - (logits.softmax(dim=-1) * logits).sum(dim=-1)
