"""What happens where a reward source fails: the run stops, or the trajectory is left out."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from rewardswap.errors import RunStoppedError
from rewardswap.rewards.base import RewardSource
from rewardswap.types import Group

OnFailure = Literal["stop", "drop"]


class RewardFailedError(ValueError):
    """A reward source raised, or gave rewards that cannot be used."""


def label(group: Group, source: RewardSource) -> Group:
    """The group with the rewards of `source` in force: the reward swap is this assignment.

    Raises RewardFailedError naming the task where the source raises an error, gives another shape
    than [N, K], or a number that is not finite.
    """
    reward = _scored(group, source)
    return group.with_rewards({**group.rewards, source.name: reward}, reward)


def label_all(
    groups: Sequence[Group], source: RewardSource, on_failure: OnFailure
) -> tuple[list[Group], int]:
    """Labelled groups, and how many trajectories were left out of them.

    With `drop` each trajectory that cannot be scored on its own is left out, and a group of fewer
    than two of several. Raises RunStoppedError naming the task with `stop`.
    """
    labelled: list[Group] = []
    dropped = 0
    for group in groups:
        try:
            labelled.append(label(group, source))
        except RewardFailedError as failure:
            if on_failure == "stop":
                raise RunStoppedError(
                    f"{failure}; repair it, or start a run with --reward.on-failure drop to leave "
                    "such trajectories out"
                ) from failure
            rest = _without_failures(group, source)
            dropped += len(group.trajectories) - (len(rest.trajectories) if rest else 0)
            labelled += [rest] if rest else []
    return labelled, dropped


def _scored(group: Group, source: RewardSource) -> Float[Tensor, "N K"]:
    where = f"the dense reward {source.name!r} of task {group.task.id!r}"
    try:
        reward = source.score(group)
    except RunStoppedError:
        raise
    except (Exception, SystemExit) as error:  # a source may be anybody's code
        raise RewardFailedError(f"{where} raised {type(error).__name__}: {error}") from error
    shape = [len(group.trajectories), group.turn_count]
    if not isinstance(reward, Tensor) or list(reward.shape) != shape:
        found = list(reward.shape) if isinstance(reward, Tensor) else type(reward).__name__
        raise RewardFailedError(f"{where} has shape {found}, not {shape}: a number for every turn")
    if not torch.isfinite(reward).all():
        episode = int(torch.nonzero(~torch.isfinite(reward).all(dim=1))[0])
        index = group.trajectories[episode].index
        raise RewardFailedError(f"{where} is not finite in episode {index}")
    return reward


def _without_failures(group: Group, source: RewardSource) -> Group | None:
    """The group of the trajectories that can be scored, none where fewer than two are left."""
    rows: list[int] = []
    for n, trajectory in enumerate(group.trajectories):
        try:
            _scored(Group(group.task, (trajectory,)), source)
        except RewardFailedError:
            continue
        rows.append(n)
    if len(rows) < min(2, len(group.trajectories)):
        return None
    turns = max(len(group.trajectories[n].turns) for n in rows)
    kept = replace(
        group,
        trajectories=tuple(group.trajectories[n] for n in rows),
        rewards={name: value[rows, :turns] for name, value in group.rewards.items()},
        reward=None,
        columns={},
        selected=tuple(group.selected[n] for n in rows),
    )
    return label(kept, source)
