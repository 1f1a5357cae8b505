"""The contract of a reward source: one named number per turn."""

from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from rewardswap.types import Group


@runtime_checkable
class RewardSource(Protocol):
    """Scores every turn of a group; the reward swap exchanges one source for another."""

    @property
    def name(self) -> str:
        """Key of the scores in `Group.rewards`."""
        ...

    def score(self, group: Group) -> Float[Tensor, "N K"]:
        """Reward of every turn, float32, 0 where a trajectory has no such turn."""
        ...
