"""Checkpoints of a run of several ranks: rank 0 writes and reads, all take part."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rewardswap.checkpoints.codec import gather
from rewardswap.checkpoints.files import Checkpoints
from rewardswap.ranks import Ranks, by_first


class SharedCheckpoints(Checkpoints):
    """The checkpoints of rank 0. What is in parts is written whole, so any number of ranks, or one
    process, can go on from it."""

    def __init__(self, folder: Path, keep: int, parts: Sequence[str], ranks: Ranks) -> None:
        super().__init__(folder, keep, parts)
        self.ranks = ranks

    def write(self, number: int, state: Any) -> None:
        """As `Checkpoints.write`; raises RunStoppedError on every rank where rank 0 cannot."""
        if self.ranks.first(number in self.numbers()):
            return
        if self.ranks.rank:
            gather(state)
        by_first(self.ranks, lambda: super(SharedCheckpoints, self).write(number, state))

    def go_on_from(self, number: int) -> None:
        """As `Checkpoints.go_on_from`, on rank 0."""
        if self.ranks.rank == 0:
            super().go_on_from(number)

    def clear(self) -> None:
        """As `Checkpoints.clear`, on rank 0."""
        if self.ranks.rank == 0:
            super().clear()
