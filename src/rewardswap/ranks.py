"""The processes that train one model together, each called a rank."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar, runtime_checkable

from torch import Tensor

from rewardswap.errors import RunStoppedError

T = TypeVar("T")


@runtime_checkable
class Ranks(Protocol):
    """All ranks, as one of them sees them. What follows is called by every rank, or by none.

    Every rank knows the whole batch and decides the same; what is divided is the work: episodes,
    micro-batches, and with sharding weights and moments (ours).
    """

    @property
    def rank(self) -> int:
        """Number of this one, from 0 on; 0 keeps the record of the run."""
        ...

    @property
    def size(self) -> int:
        """How many there are."""
        ...

    def gather(self, value: T) -> list[T]:
        """The value of every rank, in order of ranks."""
        ...

    def first(self, value: T) -> T:
        """The value that rank 0 has."""
        ...

    def add(self, tensor: Tensor) -> None:
        """Replace `tensor` by the sum over all ranks, in place."""
        ...


class Alone:
    """One process: there is nothing to wait for."""

    rank = 0
    size = 1

    def gather(self, value: T) -> list[T]:
        """The value itself."""
        return [value]

    def first(self, value: T) -> T:
        """The value itself."""
        return value

    def add(self, tensor: Tensor) -> None:
        """The tensor is the sum already."""


ALONE = Alone()


def by_first(ranks: Ranks, compute: Callable[[], T]) -> T:
    """What rank 0 computes, on every rank; ValueError and RunStoppedError are raised on all."""
    found: T | None = None
    refused: Exception | None = None
    if ranks.rank == 0:
        try:
            found = compute()
        except (ValueError, RunStoppedError) as error:
            refused = error
    found, refused = ranks.first((found, refused))
    if refused is not None:
        raise refused
    return found  # type: ignore[return-value]


def share(items: Sequence[T], ranks: Ranks) -> list[T]:
    """This rank's items: dealt in turn, so that every item is one rank's."""
    return list(items[ranks.rank :: ranks.size])
