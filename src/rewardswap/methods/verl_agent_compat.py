"""verl-agent's baselines as its code computes them.

Paper: GiGPO, arXiv:2505.10978, and its code base verl-agent.
Idea in one sentence: what published numbers were made with, its biases included, so that they can
    be compared; our defaults are the unbiased ones.
Formula: one row per turn; s = 10 outcome - .1 (action invalid) for every row of an episode;
    grpo A = (s - mean(s)) / (std(s) + 1e-6) over the rows of the group; gigpo adds w times the same
    of G_t - .1 (action invalid) among the group's rows of equal observation, G_t = r_t + .95 G_t+1;
    rloo A = (s - mean(s)) n / (n - 1), n rows; reinforce_plus_plus s, reinforce_plus_plus_baseline
    s - mean(s), ppo s - V_t, each whitened over all tokens. Loss: clip .2, dual clip 3, plus
    .01 k3 - .001 entropy, as the mean of token means of 32 rows each. ppo's critic: value clip .5
    around V_old, ten times the policy's learning rate.
Defaults from: verl-agent's ALFWorld scripts; with 8 rows per micro-batch and `normalisation mean`
    they are WebShop's, with clip_high .28 and 10 collections DAPO's.
Deviations: rows are not doubled at random to fill the micro-batches, so the last one of a step may
    be short, and counts as much as a full one. Steps hold whole trajectories in their own order
    and weigh 1 each; verl-agent's hold 256 rows, in an order that balances GPUs, and a short last
    one weighs less. An action is invalid where the environment does not admit it, there where the
    answer's format is wrong. Dynamic sampling collects as many groups as are missing and never
    keeps one of equal returns, there whole batches are collected and the last try keeps all it
    got. Whitened places off the mask are 0: no loss reads them. Statistics are in float64. Prompts,
    optimizer and batch sizes are the run's. Under RSPO (ours) a dense reward is scaled as the
    outcome is, group statistics run over the rows of all siblings, those over the batch over what
    is trained on, and the critic learns from fresh rows.
"""

from dataclasses import dataclass, field, fields
from typing import ClassVar, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from rewardswap.algorithm import Algorithm
from rewardswap.choices import ValueRegression, keep_all
from rewardswap.core.reductions import trajectory_mean_weights
from rewardswap.core.segments import dense_ids
from rewardswap.methods.base import Method
from rewardswap.methods.compat import dynamic_sampling_rows
from rewardswap.methods.compat_rows import RowReader, RowStatistics, TurnValues, WhitenedScores
from rewardswap.methods.gigpo import Anchor, GroupInGroup
from rewardswap.models.batching import Batch
from rewardswap.seams import AdvantageEstimator
from rewardswap.types import Group

Base = Literal[
    "grpo", "gigpo", "rloo", "reinforce_plus_plus", "reinforce_plus_plus_baseline", "ppo"
]

USED_BY: dict[str, tuple[Base, ...]] = {
    "normalisation": ("grpo", "gigpo"),
    "step_weight": ("gigpo",),
    "step_discount": ("gigpo",),
    "anchor": ("gigpo",),
    "similarity": ("gigpo",),
}
"""Settings that some bases only read."""


@dataclass(frozen=True)
class MicrobatchMean:
    """The mean over chunks of `rows` turns of the mean over each chunk's action tokens.

    w = 1 / (chunks x tokens of the chunk); turns are in order of trajectory and number, whatever
    rows and micro-batches they stand in here. Raises ValueError for an empty mask.
    """

    rows: int = 32

    def __call__(self, mask: Bool[Tensor, "B T"], batch: Batch) -> Float[Tensor, "B T"]:
        trajectory = batch.trajectory[:, None].expand(mask.shape)
        chunk = torch.full_like(batch.turn, -1)
        chunk[mask] = dense_ids(trajectory[mask], batch.turn[mask]) // self.rows
        return trajectory_mean_weights(mask, chunk)


@dataclass(frozen=True)
class MicrobatchValueRegression(ValueRegression):
    """Clipped squared error, averaged as the policy's loss is."""

    reduction: MicrobatchMean = field(default_factory=MicrobatchMean)

    def weigh(self, batch: Batch) -> Batch:
        """Rows that count, weighted by the reduction."""
        batch = super().weigh(batch)
        return batch.with_weights({"value": self.reduction(batch.action_mask, batch)})


def differing(group: Group) -> bool:
    """Whether the returns of a group are not all the same, before any penalty."""
    size = len(group.trajectories)
    return len(dynamic_sampling_rows(group.returns, size, last_try=False)) > 0


@dataclass(frozen=True)
class VerlAgentCompat(Method):
    """verl-agent's GRPO, GiGPO, RLOO, REINFORCE++ and PPO."""

    rewards_suffice: ClassVar[bool] = False

    idle: ClassVar[frozenset[str]] = frozenset({"average", "average_tokens", "kl_placement"})

    base: Base = "grpo"
    """Whose advantages, as verl-agent computes them."""
    dual_clip: float | None = 3.0
    kl_coefficient: float = 0.01
    entropy_coefficient: float = 0.001
    outcome_scale: float = 10.0
    """Reward of a success, which the penalty is small beside (verl-agent: 10)."""
    invalid_penalty: float = 0.1
    """What an invalid action costs its own row (verl-agent: .1)."""
    rows_per_microbatch: int = 32
    """Turns whose tokens are averaged together (verl-agent: ALFWorld 32, its PPO 16, WebShop 8)."""
    collections: int = 1
    """Most collections of one update, with groups of equal returns left out (verl-agent's DAPO:
    10); 1: all groups stay."""
    normalisation: Literal["std", "mean"] = "std"
    """Of grpo and gigpo: divide by the standard deviation (mean_std_norm: ALFWorld) or only centre
    (mean_norm: WebShop)."""
    step_weight: float = 1.0
    """w of gigpo's step advantage (verl-agent: 1)."""
    step_discount: float = 0.95
    """Discount of later turns' rewards in gigpo's step return (verl-agent: .95)."""
    anchor: Anchor = "observation"
    """What gigpo's step groups have in common (verl-agent: equal observation texts)."""
    similarity: float = 0.95
    """Least matching-blocks ratio of similar observations (verl-agent: .95)."""

    @property
    def needs_siblings(self) -> bool:  # type: ignore[override]
        """Whether a group of one trajectory teaches nothing (verl-agent's PPO has such groups)."""
        return self.base not in ("ppo", "reinforce_plus_plus")

    def _check(self) -> None:
        super()._check()
        for setting in fields(self):
            users = USED_BY.get(setting.name, (self.base,))
            if self.base not in users and getattr(self, setting.name) != setting.default:
                raise ValueError(f"{setting.name} does nothing with base {self.base}")
        if not self.outcome_scale > 0:
            raise ValueError(f"outcome_scale must be above 0, got {self.outcome_scale}")
        for name in ("invalid_penalty", "step_weight"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must be at least 0, got {getattr(self, name)}")
        for name in ("rows_per_microbatch", "collections"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if not 0 <= self.step_discount <= 1:
            raise ValueError(f"step_discount must be in [0, 1], got {self.step_discount}")
        if not 0 < self.similarity < 1:
            raise ValueError(f"similarity must be inside (0, 1), got {self.similarity}")

    def algorithm(self) -> Algorithm:
        """The base's advantages of rows, PPO's clip with its dual, and a critic for ppo."""
        rows = RowReader(self.outcome_scale, self.invalid_penalty, self.step_discount)
        return self.compose(
            self._advantage(rows),
            keep=differing if self.collections > 1 else keep_all,
            collections=self.collections,
            critic=self._critic(rows) if self.base == "ppo" else None,
        )

    def _advantage(self, rows: RowReader) -> AdvantageEstimator:
        if self.base == "ppo":
            return TurnValues(rows)
        if self.base == "reinforce_plus_plus":
            return WhitenedScores(rows)
        if self.base == "reinforce_plus_plus_baseline":
            return WhitenedScores(rows, subtract_group_mean=True)
        return RowStatistics(
            rows,
            self.base,
            self.normalisation == "std",
            self.step_weight,
            GroupInGroup(anchor=self.anchor, similarity=self.similarity),
        )

    def _reduction(self) -> MicrobatchMean:
        return MicrobatchMean(self.rows_per_microbatch)

    def _critic(self, rows: RowReader) -> MicrobatchValueRegression:
        return MicrobatchValueRegression(
            targets=TurnValues(rows, target=True),
            clip=0.5,
            reduction=self._reduction(),
        )
