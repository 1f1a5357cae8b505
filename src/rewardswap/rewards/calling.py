"""Any Python function of a trajectory as a process reward."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from rewardswap.outside import imported
from rewardswap.types import Group, Trajectory

RewardFunction = Callable[[Trajectory], Sequence[float]]
"""One number for each turn of a trajectory."""


@dataclass(frozen=True)
class CallableReward:
    """What a function says of each turn of each trajectory."""

    function: RewardFunction
    name: str = "callable"

    def score(self, group: Group) -> Float[Tensor, "N K"]:
        """r_{i,t} = function(trajectory i)[t].

        Raises ValueError naming the task where the function gives another number of rewards than
        the trajectory has turns.
        """
        reward = torch.zeros(group.turn_mask.shape)
        for row, trajectory in zip(reward, group.trajectories, strict=True):
            said = torch.as_tensor(self.function(trajectory), dtype=torch.float32).detach()
            if said.shape != (len(trajectory.turns),):
                raise ValueError(
                    f"{self.name} gave rewards of shape {list(said.shape)} for the "
                    f"{len(trajectory.turns)} turns of task {trajectory.task.id!r}, episode "
                    f"{trajectory.index}; it must give one number per turn"
                )
            row[: len(said)] = said
        return reward


def named_function(name: str) -> RewardFunction:
    """The function of `module:attribute`; a module is looked for in the working directory too.

    Raises ValueError for a module that cannot be imported, or an attribute that is no function.
    """
    found = imported("dense reward", name)
    if not callable(found):
        raise ValueError(f"dense reward {name!r} is {found!r}, not a function of a trajectory")
    function: RewardFunction = found
    return function
