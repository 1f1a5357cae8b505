"""Per-token policy losses [B, T], before any reduction; smaller is better.

Log-probs that carry gradients come from `segments.masked_fill_zero` or `ratios.log_ratio`, so what
stands at masked places reaches neither the weighted sum nor the gradient.
"""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from rewardswap.core.segments import dense_ids, masked_fill_zero, segment_mean


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
    return torch.maximum(-ratio * advantage, -ratio.clamp(lower, upper) * advantage)


def is_clipped(
    ratio: Float[Tensor, "B T"],
    lower: Float[Tensor, "B T"],
    upper: Float[Tensor, "B T"],
    advantage: Float[Tensor, "B T"],
) -> Bool[Tensor, "B T"]:
    """Where the clip of `ppo_clip` is active, so the token pulls no more."""
    return -ratio.clamp(lower, upper) * advantage > -ratio * advantage


def dual_clip(
    loss: Float[Tensor, "B T"], advantage: Float[Tensor, "B T"], ceiling: float = 3.0
) -> Float[Tensor, "B T"]:
    """min(loss, -ceiling · A) where A < 0 (dual-clip PPO, arXiv:1912.09729, Eq. 5).

    Raises ValueError for a ceiling that is not above 1.
    """
    if ceiling <= 1:
        raise ValueError(f"the ceiling of the dual clip must be > 1, got {ceiling}")
    return torch.where(advantage < 0, torch.minimum(loss, -ceiling * advantage), loss)


def is_dual_clipped(
    loss: Float[Tensor, "B T"], advantage: Float[Tensor, "B T"], ceiling: float = 3.0
) -> Bool[Tensor, "B T"]:
    """Where `dual_clip` changes the loss."""
    return (advantage < 0) & (loss > -ceiling * advantage)


def cispo(
    logprob: Float[Tensor, "B T"],
    ratio: Float[Tensor, "B T"],
    lower: Float[Tensor, "B T"],
    upper: Float[Tensor, "B T"],
    advantage: Float[Tensor, "B T"],
) -> Float[Tensor, "B T"]:
    """-sg(clip(r, lower, upper)) · A · log π (CISPO, arXiv:2506.13585, Eq. 4).

    No token loses its gradient.
    """
    return -ratio.clamp(lower, upper).detach() * advantage * logprob


def sapo(
    ratio: Float[Tensor, "B T"],
    center: Float[Tensor, "B T"],
    advantage: Float[Tensor, "B T"],
    *,
    temperature_positive: float = 1.0,
    temperature_negative: float = 1.05,
) -> Float[Tensor, "B T"]:
    """-(4/τ) σ(τ(r - c)) A, τ by the sign of A: a soft gate in place of the clip.

    SAPO (arXiv:2511.20347), there c = 1; the centre c = π_old/π_behavior for replayed rows is
    ours. The gate's slope at r = c is 1.
    """
    temperature = torch.where(advantage > 0, temperature_positive, temperature_negative)
    return -(4 / temperature) * torch.sigmoid(temperature * (ratio - center)) * advantage


def gmpo(
    token_log_ratio: Float[Tensor, "B T"],
    log_lower: Float[Tensor, "B T"],
    log_upper: Float[Tensor, "B T"],
    advantage: Float[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
    trajectory: Int[Tensor, "B T"],
) -> Float[Tensor, "B T"]:
    """-A · geometric mean over the trajectory of the clipped ratios, at each of its tokens.

    GMPO (arXiv:2507.20673): log-ratios are clipped per token on the side that A's sign asks for,
    A is the trajectory's mean. Reduce it with `reductions.trajectory_mean_weights`.
    """
    clipped = token_log_ratio.clamp(log_lower, log_upper)
    pessimistic = torch.where(
        advantage >= 0,
        torch.minimum(token_log_ratio, clipped),
        torch.maximum(token_log_ratio, clipped),
    )
    segment = dense_ids(trajectory[mask])
    ratio = segment_mean(pessimistic[mask], segment).exp()
    loss = -segment_mean(advantage[mask], segment) * ratio
    return torch.zeros_like(token_log_ratio).masked_scatter(mask, loss[segment])


def dppo_tv(
    ratio: Float[Tensor, "B T"],
    logprob: Float[Tensor, "B T"],
    old_logprob: Float[Tensor, "B T"],
    advantage: Float[Tensor, "B T"],
    *,
    low: float,
    high: float,
    ratio_cap: float = math.inf,
) -> Float[Tensor, "B T"]:
    """-sg(r) · A · log π where π_θ - π_old <= high (A > 0) or >= -low (A <= 0), else 0.

    DPPO (arXiv:2602.04879), the total-variation form: the probability of the sampled token bounds
    the step, not its ratio. The gradient is that of -rA with r at most `ratio_cap` (verl: 3).
    """
    gap = logprob.detach().exp() - old_logprob.exp()
    keep = torch.where(advantage > 0, gap <= high, gap >= -low)
    return masked_fill_zero(-ratio.detach().clamp(max=ratio_cap) * advantage * logprob, keep)


def dppo_kl(
    ratio: Float[Tensor, "B T"],
    logprob: Float[Tensor, "B T"],
    old_logprob: Float[Tensor, "B T"],
    advantage: Float[Tensor, "B T"],
    *,
    low: float,
    high: float,
    ratio_cap: float = math.inf,
) -> Float[Tensor, "B T"]:
    """-sg(r) · A · log π where the binary KL(π_old ‖ π_θ) of the token is in bounds, else 0.

    DPPO (arXiv:2602.04879): the bound is `high` for A > 0 and `low` else; a token that moves back
    towards π_old is kept whatever its KL.
    """
    probability, old_probability = logprob.detach().exp(), old_logprob.exp()
    others = torch.log((1 - old_probability + 1e-8) / (1 - probability + 1e-8))
    binary_kl = old_probability * (old_logprob - logprob.detach()) + (1 - old_probability) * others
    keep = torch.where(
        advantage > 0,
        (binary_kl <= high) | (probability <= old_probability),
        (binary_kl <= low) | (probability >= old_probability),
    )
    return masked_fill_zero(-ratio.detach().clamp(max=ratio_cap) * advantage * logprob, keep)


def reinforce(
    logprob: Float[Tensor, "B T"], advantage: Float[Tensor, "B T"]
) -> Float[Tensor, "B T"]:
    """-A · log π (REINFORCE, Williams 1992)."""
    return -advantage * logprob
