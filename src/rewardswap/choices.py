"""What fills the seams: ratio levels, clips, surrogates, reductions, loss terms of the field."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from rewardswap.core import divergences, surrogates
from rewardswap.core.clipping import ClipWindow, clip_bounds
from rewardswap.core.ratios import log_ratio, trajectory_log_ratio, turn_log_ratio
from rewardswap.core.reductions import (
    constant_weights,
    token_mean_weights,
    trajectory_mean_weights,
    turn_mean_weights,
    weighted_sum,
)
from rewardswap.core.segments import masked_fill_zero
from rewardswap.core.values import clipped_value_loss, value_is_clipped
from rewardswap.models.batching import Batch, TokenScores
from rewardswap.models.learner import Metrics
from rewardswap.seams import AdvantageEstimator, TokenRatios
from rewardswap.types import Group

Estimator = Literal["k1", "k2", "k3", "absolute"]


def keep_all(group: Group) -> bool:
    """Every group stays; groups of equal returns have zero advantage and are counted."""
    return True


def informative(group: Group) -> bool:
    """Only groups whose returns differ stay (DAPO's dynamic sampling, arXiv:2503.14476)."""
    returns = group.returns.double()
    spread = float(returns.max() - returns.min())
    return spread > 1e-6 * float(returns.abs().max())


def token_level(log_ratio: Float[Tensor, "B T"], batch: Batch) -> Float[Tensor, "B T"]:
    """Every token keeps its own ratio (PPO, GRPO)."""
    return log_ratio


def turn_level(log_ratio: Float[Tensor, "B T"], batch: Batch) -> Float[Tensor, "B T"]:
    """The geometric mean of the ratios of a turn (ours, between PPO and GSPO)."""
    return turn_log_ratio(log_ratio, batch.action_mask, batch.turn)


def trajectory_level(log_ratio: Float[Tensor, "B T"], batch: Batch) -> Float[Tensor, "B T"]:
    """The geometric mean of the ratios of a trajectory (GSPO, arXiv:2507.18071, Eq. 7, 14)."""
    return trajectory_log_ratio(log_ratio, batch.action_mask, _trajectories(batch))


def token_mean(mask: Bool[Tensor, "B T"], batch: Batch) -> Float[Tensor, "B T"]:
    """Every action token of the step counts the same."""
    return token_mean_weights(mask)


def turn_mean(mask: Bool[Tensor, "B T"], batch: Batch) -> Float[Tensor, "B T"]:
    """Every turn counts the same, its action tokens among themselves."""
    return turn_mean_weights(mask, batch.turn, _trajectories(batch))


def trajectory_mean(mask: Bool[Tensor, "B T"], batch: Batch) -> Float[Tensor, "B T"]:
    """Every trajectory counts the same, its action tokens among themselves."""
    return trajectory_mean_weights(mask, _trajectories(batch))


@dataclass(frozen=True)
class ConstantMean:
    """Every action token counts 1 / (trajectories x `tokens`), whatever the lengths (Dr.GRPO)."""

    tokens: float
    """Tokens that a trajectory counts as having."""

    def __call__(self, mask: Bool[Tensor, "B T"], batch: Batch) -> Float[Tensor, "B T"]:
        count = len(torch.unique(_trajectories(batch)[mask]))
        return constant_weights(mask, self.tokens * max(count, 1))


@dataclass(frozen=True)
class CenteredClip:
    """Bounds around the ratio's value before the first step, c = pi_old / pi_behavior.

    RSPO, arXiv:2607.04713, Eq. 4: c - low .. c + high. On policy c = 1 and this is PPO's clip, so
    one formula serves fresh and replayed rows. The multiplicative window c(1 - low) .. c(1 + high)
    equals c times PPO's objective in pi_theta / pi_old (decoupled PPO) and is not the paper's.
    """

    low: float = 0.2
    high: float = 0.2
    window: ClipWindow = "additive"
    center: Literal["old_over_behavior", "one"] = "old_over_behavior"
    """`one` centres replayed rows at 1, where their ratio never was: a negative control."""
    replay_low: float | None = None
    """Of replayed rows; none: `low`."""
    replay_high: float | None = None
    """Of replayed rows; none: `high`."""

    def __call__(
        self, center: Float[Tensor, "B T"], batch: Batch
    ) -> tuple[Float[Tensor, "B T"], Float[Tensor, "B T"]]:
        low: float | Tensor = self.low
        high: float | Tensor = self.high
        replayed = batch.replayed[:, None].expand(center.shape)
        if self.replay_low is not None:
            low = torch.where(replayed, self.replay_low, self.low)
        if self.replay_high is not None:
            high = torch.where(replayed, self.replay_high, self.high)
        if self.center == "one":
            center = torch.ones_like(center)
        return clip_bounds(center, low, high, self.window)


@dataclass(frozen=True)
class ClippedRatio:
    """PPO's pessimistic clip (arXiv:1707.06347, Eq. 7), with a dual clip on r / c if asked.

    The dual clip (arXiv:1912.09729, Eq. 5) bounds pi_theta / pi_old, so its ceiling is c times
    `dual_clip` in the replayed ratio q.
    """

    dual_clip: float | None = None

    def __call__(self, tokens: TokenRatios) -> Float[Tensor, "B T"]:
        loss = self._single(tokens)
        if self.dual_clip is None:
            return loss
        return surrogates.dual_clip(loss, tokens.center * tokens.advantage, self.dual_clip)

    def held(self, tokens: TokenRatios) -> Mapping[str, Bool[Tensor, "B T"]]:
        """Tokens without gradient: below, above, and beyond the dual clip."""
        t = tokens
        clipped = surrogates.is_clipped(t.ratio, t.lower, t.upper, t.advantage)
        shares = {
            "clip_low_share": clipped & (t.ratio < t.lower),
            "clip_high_share": clipped & (t.ratio > t.upper),
        }
        if self.dual_clip is not None:
            shares["dual_clip_share"] = surrogates.is_dual_clipped(
                self._single(t), t.center * t.advantage, self.dual_clip
            )
        return shares

    def _single(self, t: TokenRatios) -> Float[Tensor, "B T"]:
        return surrogates.ppo_clip(t.ratio, t.lower, t.upper, t.advantage)


@dataclass(frozen=True)
class ReferenceDivergence:
    """KL(pi_theta || pi_reference) as a loss term, by Schulman's estimators.

    On replayed rows the samples are the explorer's: there none of them is an unbiased KL.
    """

    coefficient: float
    estimator: Estimator = "k3"
    on_replay: bool = True
    name: str = "kl_reference"
    columns: tuple[str, ...] = ("reference_logprob",)
    entropy_gradient: bool = False

    def __post_init__(self) -> None:
        if self.estimator == "k1":
            raise ValueError(
                "the estimator k1 has no expected gradient as a loss; use k2 or k3, or put it in "
                "the reward (kl_placement)"
            )

    def __call__(self, scores: TokenScores, batch: Batch) -> Float[Tensor, "B T"]:
        estimate = getattr(divergences, self.estimator)
        gap = log_ratio(scores.logprob, batch.column("reference_logprob"), batch.action_mask)
        value: Tensor = estimate(gap)
        return value


@dataclass(frozen=True)
class EntropyBonus:
    """-entropy as a loss term: pulls towards wider distributions."""

    coefficient: float
    on_replay: bool = True
    name: str = "negative_entropy"
    columns: tuple[str, ...] = ()
    entropy_gradient: bool = True

    def __call__(self, scores: TokenScores, batch: Batch) -> Float[Tensor, "B T"]:
        return -masked_fill_zero(scores.entropy, batch.action_mask)


@dataclass(frozen=True)
class RewardDivergence:
    """The divergence to the reference as a reward of each token (InstructGPT, arXiv:2203.02155).

    r -= coefficient x estimate, from pi_old's log-probs, before advantages are made.
    """

    coefficient: float
    estimator: Estimator = "k1"

    def __call__(
        self, old: Float[Tensor, "N K L"], reference: Float[Tensor, "N K L"]
    ) -> Float[Tensor, "N K L"]:
        """Reward of every token, 0 where there is none."""
        penalty: Tensor = getattr(divergences, self.estimator)(old - reference)
        return -self.coefficient * penalty


@dataclass(frozen=True)
class ValueRegression:
    """Clipped squared error of a critic (PPO; verl-agent's form without the factor 1/2)."""

    targets: AdvantageEstimator
    """What values are fitted to."""
    clip: float | None = 0.5
    """Most that a value may move from the old one in one update; none: no clip."""
    on_replay: bool = False
    """Whether replayed rows count: their returns estimate the value of another policy."""
    places: Literal["token", "turn"] = "token"
    """Every action token, or the first of each turn."""
    learning_rate: float | None = None
    warmup_updates: int = 0

    def target(self, groups: Sequence[Group]) -> list[Float[Tensor, "N K L"]]:
        """The value targets of every action token."""
        return self.targets(groups)

    def weigh(self, batch: Batch) -> Batch:
        """Rows that count, each place of them the same."""
        if not self.on_replay:
            batch = batch.take(torch.nonzero(~batch.replayed)[:, 0])
        mask = batch.action_mask
        if self.places == "turn":
            earlier = torch.cat([torch.full_like(batch.turn[:, :1], -1), batch.turn[:, :-1]], dim=1)
            mask = mask & (batch.turn != earlier)
        return batch.with_weights({"value": token_mean_weights(mask)})

    def loss(self, values: Float[Tensor, "B T"], batch: Batch) -> tuple[Tensor, Metrics]:
        """Weighted error, the share of clipped places, and what explained variance needs."""
        old, target = batch.column("value"), batch.column("value_target")
        weights = batch.weights["value"]
        if self.clip is None:
            error = (values - target).square()
            clipped = torch.zeros_like(values)
        else:
            error = clipped_value_loss(values, old, target, self.clip)
            clipped = value_is_clipped(values, old, target, self.clip).float()
        value = weighted_sum(error, weights)
        return value, {
            "value_loss": float(value.detach()),
            "value_clip_share": float(weighted_sum(clipped, weights)),
        }


def _trajectories(batch: Batch) -> Tensor:
    return batch.trajectory[:, None].expand(batch.action_mask.shape)
