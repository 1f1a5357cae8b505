"""Advantages from returns: of the N siblings of one group, of anchored turns, of a whole batch.

Everything is computed in float64 and rounded once, so the order of siblings hardly matters.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from rewardswap.core.segments import (
    dense_ids,
    segment_extreme,
    segment_mean,
    segment_size,
    segment_sum,
    spread,
)

EQUAL_TOLERANCE = 1e-6
"""Returns whose range is within this share of their largest magnitude count as equal: some ulps of
float32, which is what sums of equal rewards differ by."""


def group_centered(returns: Float[Tensor, "N"]) -> Float[Tensor, "N"]:
    """A_i = R_i - mean(R) (Dr.GRPO, arXiv:2503.20783).

    Exactly 0 for returns that are equal up to rounding; that rule is ours.
    """
    return centered_by(returns, _one_group(returns))


def group_z_score(returns: Float[Tensor, "N"], epsilon: float = 1e-6) -> Float[Tensor, "N"]:
    """A_i = (R_i - mean(R)) / (std(R) + epsilon), unbiased std (GRPO, arXiv:2402.03300, §4.1.2).

    Exactly 0 for a singleton and for returns that are equal up to rounding; that rule is ours.
    """
    return z_score_by(returns, _one_group(returns), epsilon)


def leave_one_out(returns: Float[Tensor, "N"]) -> Float[Tensor, "N"]:
    """A_i = R_i - mean of the other siblings (RLOO, arXiv:2402.14740); 0 for a singleton."""
    count = len(returns)
    return group_centered(returns) * (count / max(count - 1, 1))


def softmax_advantage(returns: Float[Tensor, "N"], temperature: float) -> Float[Tensor, "N"]:
    """A_i = N·softmax(R/temperature)_i - 1 (SoftmaxGRPO, arXiv:2608.09271).

    The temperature is in reward units. Exactly 0 for equal returns. Raises ValueError for a
    temperature that is not positive.
    """
    if temperature <= 0:
        raise ValueError(f"the temperature must be > 0 reward units, got {temperature}")
    if not _differ(returns.double(), _one_group(returns)).any():
        return torch.zeros_like(returns)
    share = torch.softmax(returns.double() / temperature, dim=0)
    return (len(returns) * share - 1).to(returns.dtype)


def mean_normalised(returns: Float[Tensor, "N"]) -> Float[Tensor, "N"]:
    """A_i = (R_i - mean(R)) / mean(R) for returns >= 0 (MaxRL); 0 where the mean is 0.

    Raises ValueError for a negative return.
    """
    if (returns < 0).any():
        raise ValueError(f"mean-normalised advantages need returns >= 0, got {returns.tolist()}")
    mean = returns.double().mean()
    if mean == 0:
        return torch.zeros_like(returns)
    return (group_centered(returns.double()) / mean).to(returns.dtype)


def optimal_baseline(
    returns: Float[Tensor, "N"], lengths: Float[Tensor, "N"]
) -> Float[Tensor, "N"]:
    """A_i = R_i - Σ_j l_j R_j / Σ_j l_j, lengths in action tokens (OPO, arXiv:2505.23585).

    Exactly 0 for a singleton and for equal returns.
    """
    exact, length = returns.double(), lengths.double()
    centered = exact - (exact * length).sum() / length.sum()
    differ = _differ(exact, _one_group(returns))
    return torch.where(differ, centered, torch.zeros_like(exact)).to(returns.dtype)


def by_anchor(
    returns: Float[Tensor, "N K"],
    anchor: Int[Tensor, "N K"],
    mask: Bool[Tensor, "N K"],
    *,
    divide_by_std: bool = True,
    epsilon: float = 1e-6,
) -> Float[Tensor, "N K"]:
    """Step part of GiGPO (arXiv:2505.10978): z-score of turn returns among equal states.

    Turns of one group with equal `anchor` ids form a step group; a singleton gets 0. Without
    `divide_by_std` it is centred only (the paper's F_norm = 1). 0 off the mask.
    """
    advantage = torch.zeros_like(returns)
    if mask.any():
        segment = dense_ids(anchor[mask])
        if divide_by_std:
            advantage[mask] = z_score_by(returns[mask], segment, epsilon)
        else:
            advantage[mask] = centered_by(returns[mask], segment)
    return advantage


def centered_by(values: Float[Tensor, "M"], segment: Int[Tensor, "M"]) -> Float[Tensor, "M"]:
    """x - mean of its segment; exactly 0 where the segment's values are equal up to rounding."""
    return _centered(values.double(), segment).to(values.dtype)


def z_score_by(
    values: Float[Tensor, "M"], segment: Int[Tensor, "M"], epsilon: float = 1e-6
) -> Float[Tensor, "M"]:
    """(x - mean) / (unbiased std + epsilon) of its segment; 0 for singletons and equal values."""
    centered = _centered(values.double(), segment)
    variance = segment_sum(centered.square(), segment) / (segment_size(segment) - 1).clamp(min=1)
    return (centered / (spread(variance.sqrt(), segment) + epsilon)).to(values.dtype)


def batch_whiten(
    scores: Float[Tensor, "M"], epsilon: float = 1e-4, minimum_std: float = 1e-3
) -> Float[Tensor, "M"]:
    """(s - mean) / (unbiased std + epsilon) over the whole batch.

    Returned as they are if their std is below `minimum_std`: a batch with nearly no signal is not
    blown up. That guard is ours.
    """
    exact = scores.double()
    if len(scores) < 2 or exact.std() < minimum_std:
        return scores
    return ((exact - exact.mean()) / (exact.std() + epsilon)).to(scores.dtype)


def gdpo(
    rewards: Float[Tensor, "M R"],
    group: Int[Tensor, "M"],
    weights: Float[Tensor, "R"],
    *,
    whiten: bool = True,
    epsilon: float = 1e-4,
) -> Float[Tensor, "M"]:
    """s_i = Σ_r w_r z_r,i, each reward's z-score in its group, then whitened over the batch.

    GDPO (arXiv:2601.05242), whitened per trajectory. With one reward, weight 1 and no whitening it
    is `group_z_score`.
    """
    scores = torch.stack([z_score_by(r, group, epsilon) for r in rewards.unbind(dim=1)], dim=1)
    combined = (scores * weights).sum(dim=1)
    return batch_whiten(combined, epsilon) if whiten else combined


def progpo(
    advantage: Float[Tensor, "M"],
    outcome: Float[Tensor, "M"],
    progress: Float[Tensor, "M"],
    group: Int[Tensor, "M"],
    strength: float = 0.3,
) -> Float[Tensor, "M"]:
    """A of all-failed groups from progress: strength · q_fail · (P_i - mean P) / (std P + 1e-8).

    ProGPO (arXiv:2607.22724): P_i is the share of a trajectory's turns that reach a state new to
    it, q_fail the share of groups whose true outcomes are all 0, std that of the population; a
    group of equal progress gets 0. Every group with a success keeps its advantage.
    """
    group = dense_ids(group)
    failed = segment_extreme(outcome.double(), group, "amax") <= 0
    centered = _centered(progress.double(), group)
    deviation = segment_mean(centered.square(), group).sqrt()
    share_failed = float(failed.double().mean())
    fallback = strength * share_failed * centered / (spread(deviation, group) + 1e-8)
    return torch.where(failed[group], fallback.to(advantage.dtype), advantage)


def _centered(exact: Float[Tensor, "M"], segment: Int[Tensor, "M"]) -> Float[Tensor, "M"]:
    centered = exact - spread(segment_mean(exact, segment), segment)
    return torch.where(_differ(exact, segment)[segment], centered, torch.zeros_like(exact))


def _differ(exact: Float[Tensor, "M"], segment: Int[Tensor, "M"]) -> Bool[Tensor, "S"]:
    values_range = segment_extreme(exact, segment, "amax") - segment_extreme(exact, segment, "amin")
    return values_range > EQUAL_TOLERANCE * segment_extreme(exact.abs(), segment, "amax")


def _one_group(returns: Float[Tensor, "N"]) -> Int[Tensor, "N"]:
    return torch.zeros(len(returns), dtype=torch.int64, device=returns.device)
