"""Clip bounds as tensors, so that one surrogate serves fresh and replayed rows."""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

ClipWindow = Literal["additive", "multiplicative"]


def clip_bounds(
    center: Float[Tensor, "B T"],
    low: float,
    high: float | Float[Tensor, "B T"],
    window: ClipWindow,
) -> tuple[Float[Tensor, "B T"], Float[Tensor, "B T"]]:
    """Lower and upper bounds of a ratio around its value before the first gradient step.

    RSPO (arXiv:2607.04713, Eq. 4): center c = π_old/π_behavior, bounds c - low .. c + high
    (additive). Multiplicative, c(1 - low) .. c(1 + high), equals c times the bounds of
    π_θ/π_old: the decoupled objective of AReaL (arXiv:2505.24298). On policy c = 1 and both are
    PPO's. Raises ValueError for a negative width.
    """
    if low < 0 or bool(torch.as_tensor(high).lt(0).any()):
        raise ValueError(f"clip widths must be >= 0, got low={low} and high={high}")
    if window == "additive":
        return center - low, center + high
    return center * (1 - low), center * (1 + high)


def adaptive_high(
    advantage: Float[Tensor, "B T"], rarity: Float[Tensor, "B T"], low: float, highest: float
) -> Float[Tensor, "B T"]:
    """Upper width low + (highest - low) · rarity of tokens with A > 0, else low (GAPO).

    arXiv:2609.00444: rarity = (n - c)/(n - 1) with c successes among n siblings, from the true
    outcome. Raises ValueError if highest < low.
    """
    if highest < low:
        raise ValueError(f"the highest width {highest} is below the lowest, {low}")
    return torch.where(advantage > 0, low + (highest - low) * rarity, torch.full_like(rarity, low))
