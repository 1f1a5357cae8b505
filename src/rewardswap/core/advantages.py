"""Advantages of siblings of one group, from their returns [N]."""

import torch
from jaxtyping import Float
from torch import Tensor

EQUAL_TOLERANCE = 1e-6
"""Returns whose range is within this share of their largest magnitude count as equal: some ulps of
float32, which is what sums of equal rewards differ by."""


def group_centered(returns: Float[Tensor, "N"]) -> Float[Tensor, "N"]:
    """A_i = R_i - mean(R) (Dr.GRPO, arXiv:2503.20783); exactly 0 for equal returns.

    Returns that differ by rounding only count as equal; that rule is ours.
    """
    return _centered(returns).to(returns.dtype)


def group_z_score(returns: Float[Tensor, "N"], epsilon: float = 1e-6) -> Float[Tensor, "N"]:
    """A_i = (R_i - mean(R)) / (std(R) + epsilon), unbiased std (GRPO, arXiv:2402.03300, §4.1.2).

    Exactly 0 for a singleton and for returns that are equal up to rounding; that rule is ours.
    """
    centered = _centered(returns)
    if len(returns) < 2:
        return centered.to(returns.dtype)
    deviation = (centered.square().sum() / (len(returns) - 1)).sqrt()
    return (centered / (deviation + epsilon)).to(returns.dtype)


def _centered(returns: Float[Tensor, "N"]) -> Float[Tensor, "N"]:
    exact = returns.double()
    if exact.max() - exact.min() <= EQUAL_TOLERANCE * exact.abs().max():
        return torch.zeros_like(exact)
    return exact - exact.mean()
