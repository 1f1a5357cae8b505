from dataclasses import replace

import pytest
import torch

from made import made_group
from rewardswap.configuration import Run
from rewardswap.loops.settings import RewardSwap
from rewardswap.methods.max_rl import MaxRL
from rewardswap.rewards.checked import label
from rewardswap.rewards.outcome import OutcomeReward
from rewardswap.rewards.sources import RewardConfig


def advantages(*outcomes: float) -> list[float]:
    """One number per trajectory, which all of its turns have."""
    group = label(made_group("a", outcomes), OutcomeReward())
    found = MaxRL().algorithm().advantage([group])[0]
    assert torch.equal(found, found[:, :1] * group.turn_mask)
    return [float(value) for value in found[:, 0]]


def test_a_success_counts_for_one_over_the_share_of_successes() -> None:
    assert advantages(1, 0, 0, 0) == [3, -1, -1, -1]
    assert advantages(1, 1, 0, 0) == [1, 1, -1, -1]
    assert advantages(1, 1, 1, 0) == pytest.approx([1 / 3, 1 / 3, 1 / 3, -1])
    assert advantages(0.5, 0.25, 0.25, 0) == [1, 0, 0, -1]  # the unit of the return is nothing


@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3, 1.0])
def test_equal_returns_teach_nothing(value: float) -> None:
    assert advantages(value, value, value) == [0, 0, 0]
    assert advantages(value) == [0]


def test_returns_below_zero_are_refused() -> None:
    group = label(made_group("a", (0.0, 1.0)), OutcomeReward())
    below = group.with_rewards({}, torch.full(group.turn_mask.shape, -0.25))
    with pytest.raises(ValueError, match="need returns >= 0"):
        MaxRL().algorithm().advantage([below])
    with pytest.raises(ValueError, match="kl_placement reward makes returns below 0"):
        MaxRL(kl_coefficient=0.1, kl_placement="reward")


def test_the_explorer_needs_a_credit_that_reads_dense_rewards() -> None:
    run = Run("x", loop="on_policy", method=MaxRL())
    with pytest.raises(ValueError, match=r"use reward\.dense_credit reward_to_go, or loop"):
        replace(run, loop="rspo")
    replace(run, loop="rspo", reward=RewardConfig(dense_credit="reward_to_go"))
    replace(run, loop="rspo", swap=RewardSwap(explore_steps=0))
