"""A proximal policy-gradient method as a value: one choice per seam, and the loss they make."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from rewardswap.choices import (
    CenteredClip,
    ClippedRatio,
    RewardDivergence,
    keep_all,
    token_level,
    token_mean,
)
from rewardswap.core.divergences import k3
from rewardswap.core.ratios import ImportanceCap, cap_importance, log_ratio, replay_ratio
from rewardswap.core.reductions import weighted_sum
from rewardswap.core.segments import masked_fill_zero
from rewardswap.models.batching import Batch, TokenScores
from rewardswap.models.learner import Metrics
from rewardswap.seams import (
    AdvantageEstimator,
    ClipRange,
    CriticLoss,
    GroupFilter,
    LossTerm,
    RatioLevel,
    Reduction,
    Surrogate,
    TokenRatios,
    restore,
    state_of,
)


@dataclass(frozen=True)
class Algorithm:
    """One choice per seam. The trainer runs it without knowing whose method it is."""

    advantage: AdvantageEstimator
    ratio_level: RatioLevel = token_level
    clip: ClipRange = field(default_factory=CenteredClip)
    surrogate: Surrogate = field(default_factory=ClippedRatio)
    reduction: Reduction = token_mean
    terms: tuple[LossTerm, ...] = ()
    keep: GroupFilter = keep_all
    collections: int = 1
    """Most collections of one update: further ones fill the places of groups not kept."""
    critic: CriticLoss | None = None
    reward_divergence: RewardDivergence | None = None
    importance_cap: ImportanceCap = "none"
    """What happens to pi_old / pi_behavior of replayed rows above `importance_maximum`."""
    importance_maximum: float = 2.0
    mixing: Literal["weighted", "concatenated"] = "weighted"
    """weighted: fresh and replayed rows are averaged apart, then mixed by alpha (the paper's
    Eq. 1); concatenated: all rows are one average, whatever alpha is."""
    behavior: Literal["trainer", "engine"] = "trainer"
    """Whose log-probs of the sampled tokens are pi_behavior: a forward pass of the trainer, or
    what the rollout engine sampled with."""
    whole_trajectories: bool = False
    """Whether ratio or surrogate read all rows of a trajectory: they stay in one micro-batch."""

    @property
    def needs_reference(self) -> bool:
        """Whether log-probs of the start policy are read."""
        columns = {name for term in self.terms for name in term.columns}
        return "reference_logprob" in columns or self.reward_divergence is not None

    @property
    def entropy_gradient(self) -> bool:
        """Whether a term needs the gradient of the entropy."""
        return any(term.entropy_gradient for term in self.terms)

    def state(self) -> dict[str, Any]:
        """What the parts that remember something remember, by their seam."""
        parts = {part.name: state_of(getattr(self, part.name)) for part in fields(self)}
        return {name: state for name, state in parts.items() if state is not None}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state`."""
        for name, remembered in state.items():
            restore(getattr(self, name), remembered)

    def weigh(self, batch: Batch, replay_share: float) -> Batch:
        """Weights of one optimizer step: fresh rows sum to 1 - replay_share, replayed to it.

        Two terms, each averaged over its own tokens (arXiv:2607.04713, Eq. 1). A step that holds
        rows of one kind only gives them the whole weight.
        """
        replayed = batch.action_mask & batch.replayed[:, None]
        fresh = batch.action_mask & ~batch.replayed[:, None]
        if self.mixing == "concatenated" or not (replayed.any() and fresh.any()):
            weights = self.reduction(batch.action_mask, batch)
        else:
            weights = (1 - replay_share) * self.reduction(fresh, batch)
            weights = weights + replay_share * self.reduction(replayed, batch)
        only_fresh = masked_fill_zero(weights, fresh)
        terms = {term.name: weights if term.on_replay else only_fresh for term in self.terms}
        return batch.with_weights({"policy": weights, **terms})

    def loss(self, scores: TokenScores, batch: Batch) -> tuple[Tensor, Metrics]:
        """Sum of the weighted losses of all terms, and the same weighted sums as metrics."""
        tokens, capped = self.ratios(scores, batch)
        weights = batch.weights["policy"]
        value = weighted_sum(self.surrogate(tokens), weights)
        metrics = {
            "policy_loss": float(value.detach()),
            "entropy": float(weighted_sum(scores.entropy.detach(), weights)),
            "kl_old": float(weighted_sum(k3(tokens.log_ratio.detach()), weights)),
        }
        shares = {**self.surrogate.held(tokens), **capped}
        for name, share in shares.items():
            metrics[name] = float(weighted_sum(share.float(), weights))
        for term in self.terms:
            part = weighted_sum(term(scores, batch), batch.weights[term.name])
            value = value + term.coefficient * part
            metrics[term.name] = float(part.detach())
        return value, metrics

    def ratios(self, scores: TokenScores, batch: Batch) -> tuple[TokenRatios, dict[str, Tensor]]:
        """All that a surrogate reads, and which tokens' importance was capped."""
        mask = batch.action_mask
        old, behavior = batch.column("old_logprob"), batch.column("behavior_logprob")
        center = self.ratio_level(log_ratio(old, behavior, mask), batch).exp()
        capped: dict[str, Tensor] = {}
        if self.importance_cap != "none":
            capped["importance_capped_share"] = center > self.importance_maximum
            center = cap_importance(center, self.importance_cap, self.importance_maximum)
        moved = self.ratio_level(log_ratio(scores.logprob, old, mask), batch)
        lower, upper = self.clip(center, batch)
        tokens = TokenRatios(
            ratio=replay_ratio(moved, center),
            log_ratio=moved,
            center=center,
            lower=lower,
            upper=upper,
            advantage=batch.column("advantage"),
            logprob=masked_fill_zero(scores.logprob, mask),
            old_logprob=masked_fill_zero(old, mask),
            mask=mask,
            trajectory=batch.trajectory[:, None].expand(mask.shape),
        )
        return tokens, capped


def effective_sample_size(batch: Batch, rows: Bool[Tensor, "B"]) -> Metrics:
    """How much `rows` of earlier policies still say of this one, before an update's first step.

    ESS / n = (sum w)^2 / (n sum w^2), per token with w = c and per trajectory with the
    length-normalised weight w = exp(mean log c); c = pi_old / pi_behavior. Empty without such rows.
    """
    mask = batch.action_mask & rows[:, None]
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
