"""Per-token losses of a critic, before any reduction."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def clipped_value_loss(
    value: Float[Tensor, "B T"],
    old_value: Float[Tensor, "B T"],
    target: Float[Tensor, "B T"],
    clip: float,
) -> Float[Tensor, "B T"]:
    """max((V - G)², (clip(V, V_old ± clip) - G)²), without the factor 1/2 (verl-agent's PPO).

    Give `value` through `segments.masked_fill_zero`. Raises ValueError for a negative clip.
    """
    if clip < 0:
        raise ValueError(f"the value clip must be >= 0, got {clip}")
    clipped = value.clamp(old_value - clip, old_value + clip)
    return torch.maximum((value - target).square(), (clipped - target).square())


def value_is_clipped(
    value: Float[Tensor, "B T"],
    old_value: Float[Tensor, "B T"],
    target: Float[Tensor, "B T"],
    clip: float,
) -> Bool[Tensor, "B T"]:
    """Where the clip of `clipped_value_loss` is active, so the place pulls no more."""
    clipped = value.clamp(old_value - clip, old_value + clip)
    return (clipped - target).square() > (value - target).square()
