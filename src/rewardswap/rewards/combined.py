"""Two reward sources as one."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from rewardswap.rewards.base import RewardSource
from rewardswap.types import Group


@dataclass(frozen=True)
class AddedRewards:
    """The sum of two reward sources, turn by turn; it has the first one's name."""

    first: RewardSource
    second: RewardSource

    @property
    def name(self) -> str:
        """The name of the first source."""
        return self.first.name

    def score(self, group: Group) -> Float[Tensor, "N K"]:
        """r = r_first + r_second."""
        return self.first.score(group) + self.second.score(group)
