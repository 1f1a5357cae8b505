"""Clip bounds as tensors, so that one surrogate serves fresh and replayed rows."""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

ClipWindow = Literal["additive", "multiplicative", "logarithmic"]


def clip_bounds(
    center: Float[Tensor, "B T"],
    low: float | Float[Tensor, "B T"],
    high: float | Float[Tensor, "B T"],
    window: ClipWindow,
) -> tuple[Float[Tensor, "B T"], Float[Tensor, "B T"]]:
    """Lower and upper bounds of a ratio around its value before the first gradient step.

    RSPO (arXiv:2607.04713, Eq. 4): center c = π_old/π_behavior, bounds c - low .. c + high
    (additive). Multiplicative, c(1 - low) .. c(1 + high), equals c times the bounds of
    π_θ/π_old: the decoupled objective of AReaL (arXiv:2505.24298). On policy c = 1 and both are
    PPO's. Logarithmic, c·e^-low .. c·e^high, is GMPO's (arXiv:2507.20673). Raises ValueError for a
    negative width.
    """
    below, above = torch.as_tensor(low), torch.as_tensor(high)
    if bool(below.lt(0).any() or above.lt(0).any()):
        raise ValueError(f"clip widths must be >= 0, got low={low} and high={high}")
    if window == "additive":
        return center - below, center + above
    if window == "logarithmic":
        return center * (-below).exp(), center * above.exp()
    return center * (1 - below), center * (1 + above)


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
