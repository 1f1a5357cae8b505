"""The places where methods differ, in pipeline order, each as a function type.

Letters: N trajectories of one task, K turns, L action tokens of a turn; B rows, T tokens of a row.
A frozen callable dataclass or a plain function fills a seam; nothing subclasses the trainer.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from jaxtyping import Bool, Float
from torch import Tensor

from rewardswap.models.batching import Batch
from rewardswap.models.policy import TokenScores
from rewardswap.types import Group


@runtime_checkable
class GroupFilter(Protocol):
    """Whether there is anything to learn from a group; what is not kept is counted."""

    def __call__(self, group: Group) -> bool: ...


@runtime_checkable
class AdvantageEstimator(Protocol):
    """Advantages of every turn or token, from the rewards in force of all groups of an update."""

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


@runtime_checkable
class Surrogate(Protocol):
    """The policy loss of every token."""

    def __call__(
        self,
        ratio: Float[Tensor, "B T"],
        lower: Float[Tensor, "B T"],
        upper: Float[Tensor, "B T"],
        advantage: Float[Tensor, "B T"],
    ) -> Float[Tensor, "B T"]: ...


@runtime_checkable
class Reduction(Protocol):
    """How tokens are averaged: weights over the masked tokens that sum to one."""

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

    def __call__(self, scores: TokenScores, batch: Batch) -> Float[Tensor, "B T"]: ...
