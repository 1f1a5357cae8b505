"""Per-token policy losses [B, T], before any reduction; smaller is better."""

import torch
from jaxtyping import Float
from torch import Tensor


def ppo_clip(
    ratio: Float[Tensor, "B T"],
    lower: Float[Tensor, "B T"],
    upper: Float[Tensor, "B T"],
    advantage: Float[Tensor, "B T"],
) -> Float[Tensor, "B T"]:
    """max(-rA, -clip(r, lower, upper)A) (PPO, arXiv:1707.06347, Eq. 7).

    With r = π_θ/π_behavior and bounds centred on π_old/π_behavior it is RSPO's replayed term
    (arXiv:2607.04713, Eq. 4).
    """
    clipped = torch.minimum(torch.maximum(ratio, lower), upper)
    return torch.maximum(-ratio * advantage, -clipped * advantage)
