import torch

from rewardswap.rewards.base import RewardSource
from rewardswap.rewards.outcome import OutcomeReward
from rewardswap.rewards.rule import ProgressReward
from rewardswap.types import Group


def group_of(*trajectories) -> Group:
    return Group(task=trajectories[0].task, trajectories=trajectories)


def test_outcome_stands_on_the_last_turn(make) -> None:
    group = group_of(make([5, 5], success=True), make([5, 5, 5, 5]), make([5, 5, 5], success=True))
    source: RewardSource = OutcomeReward()
    reward = source.score(group)
    assert reward.tolist() == [[1, 0, 0], [0, 0, 0], [0, 1, 0]]
    assert torch.equal(reward.sum(dim=1), group.outcomes)
    assert source.name == "outcome"


def test_progress_is_the_environments_own_reward(make) -> None:
    group = group_of(make([5, 5, 5], rewards=[0.5, -0.25]), make([5, 5], rewards=[0.25]))
    source: RewardSource = ProgressReward()
    assert source.score(group).tolist() == [[0.5, -0.25], [0.25, 0.0]]
    assert source.name == "progress"
