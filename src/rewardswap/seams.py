"""The places where methods differ, in pipeline order, each as a function type.

Letters: N trajectories of one task, K turns, L action tokens of a turn; B rows, T tokens of a row.
A frozen callable dataclass or a plain function fills a seam; nothing subclasses the trainer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from jaxtyping import Bool, Float, Int
from torch import Tensor

from rewardswap.models.batching import Batch, TokenScores
from rewardswap.models.learner import Metrics
from rewardswap.types import Group


@runtime_checkable
class GroupFilter(Protocol):
    """Whether there is anything to learn from a group; what is not kept is counted."""

    def __call__(self, group: Group) -> bool: ...


@runtime_checkable
class AdvantageEstimator(Protocol):
    """Advantages [N K] or [N K L] from the rewards in force of all groups of an update."""

    def __call__(self, groups: Sequence[Group]) -> list[Tensor]: ...


@runtime_checkable
class RatioLevel(Protocol):
    """The log importance ratio of each token, from its own or from its segment's tokens."""

    def __call__(self, log_ratio: Float[Tensor, "B T"], batch: Batch) -> Float[Tensor, "B T"]: ...


@runtime_checkable
class ClipRange(Protocol):
    """Lower and upper bound of the ratio, per token, around its value before the first step."""

    def __call__(
        self, center: Float[Tensor, "B T"], batch: Batch
    ) -> tuple[Float[Tensor, "B T"], Float[Tensor, "B T"]]: ...


@dataclass(frozen=True)
class TokenRatios:
    """What a surrogate reads of every token; off the mask a ratio is 1 and a log-prob 0."""

    ratio: Float[Tensor, "B T"]
    """q = pi_theta / pi_behavior at the method's ratio level."""
    log_ratio: Float[Tensor, "B T"]
    """log pi_theta / pi_old at that level."""
    center: Float[Tensor, "B T"]
    """c = pi_old / pi_behavior at that level, capped: q before the first step; 1 on policy."""
    lower: Float[Tensor, "B T"]
    upper: Float[Tensor, "B T"]
    advantage: Float[Tensor, "B T"]
    logprob: Float[Tensor, "B T"]
    """log pi_theta, with gradient."""
    old_logprob: Float[Tensor, "B T"]
    mask: Bool[Tensor, "B T"]
    trajectory: Int[Tensor, "B T"]


@runtime_checkable
class Surrogate(Protocol):
    """The policy loss of every token, and what it holds back."""

    def __call__(self, tokens: TokenRatios) -> Float[Tensor, "B T"]: ...

    def held(self, tokens: TokenRatios) -> Mapping[str, Bool[Tensor, "B T"]]:
        """Tokens that a clip or mask of the surrogate acts on, by the metric that counts them."""
        ...


@runtime_checkable
class Reduction(Protocol):
    """How tokens are averaged: weights over the masked tokens, decided per optimizer step."""

    def __call__(self, mask: Bool[Tensor, "B T"], batch: Batch) -> Float[Tensor, "B T"]: ...


@runtime_checkable
class LossTerm(Protocol):
    """An auxiliary loss of every token, such as the KL divergence to a reference."""

    @property
    def name(self) -> str: ...

    @property
    def coefficient(self) -> float: ...

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the batch that the term reads beside the common ones."""
        ...

    @property
    def on_replay(self) -> bool:
        """Whether replayed rows have it too."""
        ...

    @property
    def entropy_gradient(self) -> bool:
        """Whether it needs the gradient of the entropy."""
        ...

    def __call__(self, scores: TokenScores, batch: Batch) -> Float[Tensor, "B T"]: ...


@runtime_checkable
class CriticLoss(Protocol):
    """How a critic learns from the groups of an update; the trainer runs it if there is one."""

    @property
    def learning_rate(self) -> float | None:
        """Of the critic's optimizer; none: ten times the policy's."""
        ...

    @property
    def warmup_updates(self) -> int:
        """Updates of the critic before the policy moves."""
        ...

    def target(self, groups: Sequence[Group]) -> list[Float[Tensor, "N K L"]]:
        """What the value of every action token is fitted to; groups have a column `value`."""
        ...

    def weigh(self, batch: Batch) -> Batch:
        """The rows that the critic learns from, with weights `value` of one optimizer step."""
        ...

    def loss(self, values: Float[Tensor, "B T"], batch: Batch) -> tuple[Tensor, Metrics]:
        """Weighted loss of all values, and weighted sums as metrics."""
        ...


@runtime_checkable
class Remembering(Protocol):
    """A part of a method that one update leaves something to the next in: a checkpoint has it."""

    def state(self) -> Mapping[str, Any]:
        """What it remembers: plain values, tensors, and containers of them."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Remember what `state` said."""
        ...


def state_of(part: object) -> Mapping[str, Any] | None:
    """What a part of a method remembers; none where it is no `Remembering` part."""
    return part.state() if isinstance(part, Remembering) else None


def restore(part: object, state: Mapping[str, Any] | None) -> None:
    """Bring back what `state_of` said."""
    if isinstance(part, Remembering) and state is not None:
        part.restore(state)
