"""Log-ratios of two policies on the same sampled tokens; the one place where masks enter a loss."""

from jaxtyping import Bool, Float
from torch import Tensor

from rewardswap.core.segments import masked_fill_zero


def log_ratio(
    logprob: Float[Tensor, "B T"],
    other_logprob: Float[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
) -> Float[Tensor, "B T"]:
    """log π - log π_other per token on the mask, and 0 (ratio 1, no gradient) off it."""
    return masked_fill_zero(logprob, mask) - masked_fill_zero(other_logprob, mask)
