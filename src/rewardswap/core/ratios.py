"""Ratios of two policies on the same sampled tokens; the one place where masks enter a loss."""

from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from rewardswap.core.segments import dense_ids, masked_fill_zero, segment_mean

ImportanceCap = Literal["none", "truncate", "mask"]


def log_ratio(
    logprob: Float[Tensor, "B T"],
    other_logprob: Float[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
) -> Float[Tensor, "B T"]:
    """log π - log π_other per token on the mask, and 0 (ratio 1, no gradient) off it."""
    return masked_fill_zero(logprob, mask) - masked_fill_zero(other_logprob, mask)


def turn_log_ratio(
    token_log_ratio: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"], turn: Int[Tensor, "B T"]
) -> Float[Tensor, "B T"]:
    """Mean log-ratio of each turn of a row at all its tokens, gradient straight through.

    Ours, between the token ratio and GSPO's: the geometric mean over one turn.
    """
    rows = torch.arange(len(mask), device=mask.device)[:, None].expand_as(mask)
    return _straight_through(token_log_ratio, mask, dense_ids(rows[mask], turn[mask]))


def trajectory_log_ratio(
    token_log_ratio: Float[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
    trajectory: Int[Tensor, "B T"],
) -> Float[Tensor, "B T"]:
    """Mean log-ratio of each trajectory at all its tokens: log of the ratios' geometric mean.

    GSPO (arXiv:2507.18071, Eq. 7) in its token form (Eq. 14): the value is the sequence's, the
    gradient goes to each token's own log-prob. A trajectory may lie in several rows (ours).
    """
    return _straight_through(token_log_ratio, mask, dense_ids(trajectory[mask]))


def replay_ratio(
    log_ratio_to_old: Float[Tensor, "B T"], center: Float[Tensor, "B T"]
) -> Float[Tensor, "B T"]:
    """q = π_θ/π_behavior as (π_θ/π_old) · c with c = π_old/π_behavior.

    RSPO (arXiv:2607.04713, Eq. 4). At θ = θ_old it is c to the bit, and on policy it is PPO's
    ratio to the bit.
    """
    return log_ratio_to_old.exp() * center


def cap_importance(
    center: Float[Tensor, "B T"], cap: ImportanceCap, maximum: float
) -> Float[Tensor, "B T"]:
    """c = π_old/π_behavior as it is, at most `maximum`, or 0 (no gradient) where above it.

    Ours: clipping bounds π_θ/π_old and never c. Give the result both to `replay_ratio` and to the
    clip bounds; count `center > maximum`. Raises ValueError for a maximum below 1, which would
    change rows that are on policy.
    """
    if cap == "none":
        return center
    if maximum < 1:
        raise ValueError(f"the cap on π_old/π_behavior must be >= 1, got {maximum}")
    if cap == "truncate":
        return center.clamp(max=maximum)
    return torch.where(center > maximum, torch.zeros_like(center), center)


def _straight_through(
    token_log_ratio: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"], segment: Int[Tensor, "M"]
) -> Float[Tensor, "B T"]:
    values = token_log_ratio[mask]
    mean = segment_mean(values.detach(), segment)[segment]
    return torch.zeros_like(token_log_ratio).masked_scatter(mask, values - values.detach() + mean)
