"""Advantages of replayed rows: from the group that collected them, or two other readings."""

from collections import deque
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, Literal

import torch
from torch import Tensor

from rewardswap.seams import AdvantageEstimator, restore, state_of
from rewardswap.types import Group

ReplayAdvantage = Literal["collection_group", "mixed_group", "history_median"]


class MixedGroup:
    """Advantages after selection: replayed siblings among themselves and with fresh ones.

    A control (ours): after selection of the best all returns are equal and teach nothing. For
    methods without a critic.
    """

    def __init__(self, estimator: AdvantageEstimator) -> None:
        self.estimator = estimator

    def state(self) -> dict[str, Any]:
        """What the method's estimator remembers."""
        return {"estimator": state_of(self.estimator)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state`."""
        restore(self.estimator, state["estimator"])

    def __call__(self, groups: Sequence[Group]) -> list[Tensor]:
        """The method's estimator, on the selected trajectories of all groups of a task."""
        places: dict[str, list[tuple[int, int]]] = {}
        for g, group in enumerate(groups):
            chosen = [(g, n) for n, selected in enumerate(group.selected) if selected]
            places.setdefault(group.task.id, []).extend(chosen)
        mixes = [_mixed(groups, members) for members in places.values()]
        found = [torch.zeros(group.turn_mask.shape) for group in groups]
        for advantage, members in zip(self.estimator(mixes), places.values(), strict=True):
            for row, (g, n) in zip(advantage, members, strict=True):
                width = found[g].shape[1]
                found[g][n, : len(row)] = row[:width]
        return found


def _mixed(groups: Sequence[Group], members: Sequence[tuple[int, int]]) -> Group:
    """One group of trajectories of several groups of a task, with their rewards."""
    trajectories = tuple(groups[g].trajectories[n] for g, n in members)
    rewards = [groups[g].reward_in_force[n] for g, n in members]
    reward = torch.zeros(len(members), max(len(t.turns) for t in trajectories))
    for row, own, trajectory in zip(reward, rewards, trajectories, strict=True):
        row[: len(trajectory.turns)] = own[: len(trajectory.turns)]
    return Group(trajectories[0].task, trajectories, reward=reward)


class HistoryMedian:
    """A_i = R_i - median of the fresh batches' mean returns (SPEAR, arXiv:2509.22601).

    Fresh rows keep the method's advantages. The history holds the last `window` updates.
    """

    def __init__(self, estimator: AdvantageEstimator, window: int = 20) -> None:
        self.estimator = estimator
        self.history: deque[float] = deque(maxlen=window)

    def state(self) -> dict[str, Any]:
        """The history, and what the method's estimator remembers."""
        return {"history": list(self.history), "estimator": state_of(self.estimator)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state`."""
        self.history.clear()
        self.history.extend(state["history"])
        restore(self.estimator, state["estimator"])

    def __call__(self, groups: Sequence[Group]) -> list[Tensor]:
        """The method's advantages, and the history's for replayed groups."""
        fresh = [group.returns for group in groups if not group.replayed]
        if fresh:
            self.history.append(float(torch.cat(fresh).mean()))
        advantages = self.estimator(groups)
        baseline = median(self.history)
        return [
            (group.returns - baseline)[:, None] * group.turn_mask if group.replayed else advantage
            for group, advantage in zip(groups, advantages, strict=True)
        ]


def replay_credit(estimator: AdvantageEstimator, mode: ReplayAdvantage) -> AdvantageEstimator:
    """The estimator that credits replayed rows as `mode` says."""
    if mode == "mixed_group":
        return MixedGroup(estimator)
    if mode == "history_median":
        return HistoryMedian(estimator)
    return estimator
