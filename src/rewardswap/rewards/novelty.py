"""A dense reward without a model: what leads to rarely visited states is worth more."""

from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from rewardswap.types import Group, Trajectory


class NoveltyReward:
    """r_t = 1 / sqrt(visits of the state that turn t leads to), of the same task (ours).

    A visit is an arrival by an action. Give each batch of the explorer to `count` once, *before*
    it is scored: a state that all siblings reach is worth less than one that a single one reaches,
    and the scores depend on no order of groups or siblings. A state that was never counted is on
    its first visit. The counts live for the run. The state after the last action has no key: it is
    told by what the environment said there.

    The reward is positive, so its sum pays for length, and less and less for standing still.
    """

    name = "novelty"

    def __init__(self) -> None:
        self._visits: dict[str, Counter[str]] = {}

    def score(self, group: Group) -> Float[Tensor, "N K"]:
        """Novelty of every turn; nothing is counted by it."""
        visits = self._visits.get(group.task.id, Counter())
        reward = torch.zeros(len(group.trajectories), group.turn_count)
        for row, trajectory in zip(reward, group.trajectories, strict=True):
            arrived = [max(1, visits[key]) for key in _arrivals(trajectory)]
            row[: len(arrived)] = torch.tensor(arrived).rsqrt()
        return reward

    def count(self, groups: Sequence[Group]) -> None:
        """Remember the arrivals of all trajectories of some groups."""
        for group in groups:
            visits = self._visits.setdefault(group.task.id, Counter())
            for trajectory in group.trajectories:
                visits.update(_arrivals(trajectory))

    def state(self) -> dict[str, Any]:
        """The visits so far, as plain JSON values."""
        return {"visits": {task: dict(visits) for task, visits in self._visits.items()}}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state`."""
        self._visits = {task: Counter(visits) for task, visits in state["visits"].items()}


def _arrivals(trajectory: Trajectory) -> list[str]:
    """Key of the state that each turn leads to."""
    end = blake2b(trajectory.final_observation.encode(), digest_size=12).hexdigest()
    return [*(turn.state_key for turn in trajectory.turns[1:]), f"end {end}"]
