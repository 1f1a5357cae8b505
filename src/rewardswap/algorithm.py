"""A proximal policy-gradient method as a value: one choice per seam, and the loss they make."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from rewardswap.core.clipping import clip_bounds
from rewardswap.core.divergences import k3
from rewardswap.core.ratios import log_ratio, replay_ratio
from rewardswap.core.reductions import token_mean_weights, trajectory_mean_weights, weighted_sum
from rewardswap.core.surrogates import ppo_clip
from rewardswap.models.batching import Batch
from rewardswap.models.policy import Metrics, TokenScores
from rewardswap.seams import (
    AdvantageEstimator,
    ClipRange,
    GroupFilter,
    LossTerm,
    RatioLevel,
    Reduction,
    Surrogate,
)
from rewardswap.types import Group


def token_level(log_ratio: Float[Tensor, "B T"], batch: Batch) -> Float[Tensor, "B T"]:
    """Every token keeps its own ratio (PPO, GRPO)."""
    return log_ratio


def token_mean(mask: Bool[Tensor, "B T"], batch: Batch) -> Float[Tensor, "B T"]:
    """Every action token of the step counts the same."""
    return token_mean_weights(mask)


def trajectory_mean(mask: Bool[Tensor, "B T"], batch: Batch) -> Float[Tensor, "B T"]:
    """Every trajectory counts the same, its action tokens among themselves."""
    return trajectory_mean_weights(mask, batch.trajectory[:, None].expand(mask.shape))


def keep_all(group: Group) -> bool:
    """Every group stays; groups of equal returns have zero advantage and are counted."""
    return True


@dataclass(frozen=True)
class CenteredClip:
    """Bounds around the ratio's value before the first step, c = pi_old / pi_behavior.

    RSPO, arXiv:2607.04713, Eq. 4: c - low .. c + high. On policy c = 1 and this is PPO's clip, so
    one formula serves fresh and replayed rows. The multiplicative window c(1 - low) .. c(1 + high)
    equals c times PPO's objective in pi_theta / pi_old (decoupled PPO) and is not the paper's.
    """

    low: float = 0.2
    high: float = 0.2
    window: Literal["additive", "multiplicative"] = "additive"

    def __call__(
        self, center: Float[Tensor, "B T"], batch: Batch
    ) -> tuple[Float[Tensor, "B T"], Float[Tensor, "B T"]]:
        return clip_bounds(center, self.low, self.high, self.window)


@dataclass(frozen=True)
class ReferenceDivergence:
    """k3 estimate of KL(pi_theta || pi_reference) as a loss term.

    On replayed rows the samples are the explorer's: there k3 is not an unbiased KL.
    """

    coefficient: float
    name: str = "kl_reference"
    columns: tuple[str, ...] = ("reference_logprob",)

    def __call__(self, scores: TokenScores, batch: Batch) -> Float[Tensor, "B T"]:
        return k3(log_ratio(scores.logprob, batch.column("reference_logprob"), batch.action_mask))


@dataclass(frozen=True)
class Algorithm:
    """One choice per seam. The trainer runs it without knowing whose method it is."""

    advantage: AdvantageEstimator
    ratio_level: RatioLevel = token_level
    clip: ClipRange = CenteredClip()
    surrogate: Surrogate = ppo_clip
    reduction: Reduction = token_mean
    terms: tuple[LossTerm, ...] = ()
    keep: GroupFilter = keep_all

    def weigh(self, batch: Batch, replay_share: float) -> Batch:
        """Weights of one optimizer step: fresh rows sum to 1 - replay_share, replayed to it.

        Two terms, each averaged over its own tokens (arXiv:2607.04713, Eq. 1). A step that holds
        rows of one kind only gives them the whole weight.
        """
        replayed = batch.action_mask & batch.replayed[:, None]
        fresh = batch.action_mask & ~batch.replayed[:, None]
        if not replayed.any():
            weights = self.reduction(fresh, batch)
        elif not fresh.any():
            weights = self.reduction(replayed, batch)
        else:
            weights = (1 - replay_share) * self.reduction(fresh, batch)
            weights = weights + replay_share * self.reduction(replayed, batch)
        return batch.with_weights(dict.fromkeys(("policy", *(t.name for t in self.terms)), weights))

    def loss(self, scores: TokenScores, batch: Batch) -> tuple[Tensor, Metrics]:
        """Sum of the weighted losses of all terms, and the same weighted sums as metrics."""
        old, behavior = batch.column("old_logprob"), batch.column("behavior_logprob")
        center = log_ratio(old, behavior, batch.action_mask).exp()
        moved = log_ratio(scores.logprob, old, batch.action_mask)
        ratio = replay_ratio(self.ratio_level(moved, batch), center)
        lower, upper = self.clip(center, batch)
        advantage = batch.column("advantage")
        weights = batch.weights["policy"]
        value = weighted_sum(self.surrogate(ratio, lower, upper, advantage), weights)
        metrics = _clip_metrics(ratio.detach(), (lower, upper), advantage, weights)
        metrics["policy_loss"] = float(value.detach())
        metrics["entropy"] = float(weighted_sum(scores.entropy, weights))
        metrics["kl_old"] = float(weighted_sum(k3(moved.detach()), weights))
        for term in self.terms:
            part = weighted_sum(term(scores, batch), batch.weights[term.name])
            value = value + term.coefficient * part
            metrics[term.name] = float(part.detach())
        return value, metrics


def _clip_metrics(
    ratio: Float[Tensor, "B T"],
    bounds: tuple[Float[Tensor, "B T"], Float[Tensor, "B T"]],
    advantage: Float[Tensor, "B T"],
    weights: Float[Tensor, "B T"],
) -> Metrics:
    """Weighted share of the tokens whose gradient the clip stops, on either side."""
    lower, upper = bounds
    shares: Mapping[str, Tensor] = {
        "clip_low_share": (ratio < lower) & (advantage < 0),
        "clip_high_share": (ratio > upper) & (advantage > 0),
    }
    return {name: float(weighted_sum(share.float(), weights)) for name, share in shares.items()}


def effective_sample_size(batch: Batch) -> Metrics:
    """How much the replayed rows still say of the policy, before the first step of an update.

    ESS / n = (sum w)^2 / (n sum w^2), per token with w = c and per trajectory with the
    length-normalised weight w = exp(mean log c); c = pi_old / pi_behavior. Empty without replay.
    """
    mask = batch.action_mask & batch.replayed[:, None]
    if not mask.any():
        return {}
    gap = log_ratio(batch.column("old_logprob"), batch.column("behavior_logprob"), mask).double()
    weight = gap[mask].exp()
    _, segment = torch.unique(
        batch.trajectory[:, None].expand(mask.shape)[mask], return_inverse=True
    )
    count = torch.bincount(segment).double()
    mean_gap = torch.zeros_like(count).index_add_(0, segment, gap[mask]) / count
    return {
        "effective_sample_size": _normalised_ess(weight),
        "effective_sample_size_trajectory": _normalised_ess(mean_gap.exp()),
        "importance_second_moment": float(weight.square().mean()),
        "importance_mean": float(weight.mean()),
    }


def _normalised_ess(weight: Float[Tensor, "M"]) -> float:
    return float(weight.sum().square() / (len(weight) * weight.square().sum()))
