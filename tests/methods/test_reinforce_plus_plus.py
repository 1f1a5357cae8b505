"""REINFORCE++ by hand."""

from dataclasses import replace

import pytest
from worked import chain_loss, each, group_of, near, two_trajectories_loss

from rewardswap.methods.reinforce_plus_plus import ReinforcePlusPlus


def test_returns_are_whitened_over_the_batch() -> None:
    # G = 1, 1 and 0; every trajectory once: mean .5, std sqrt(.5): .5 / .7071068
    group = group_of([[0.0, 1.0], [0.0]])
    assert each(ReinforcePlusPlus(), group) == near([0.7071068, -0.7071068])
    # over two groups: G = 1, 0, 1, 1: mean .75, variance (3 x .0625 + .5625) / 3 = .25, std .5
    other = group_of([[1.0], [0.0, 1.0]], task="b")
    assert each(ReinforcePlusPlus(), group, other) == near([0.5, -1.5, 0.5, 0.5])


def test_later_rewards_are_discounted_turn_by_turn() -> None:
    # G = (.5, 1) and 0; mean ((.5 + 1) / 2 + 0) / 2 = .375
    # variance (.125^2 + .625^2) / 2 + .375^2 = .34375 over 2, times 2 / (2 - 1): std .5863020
    (found,) = ReinforcePlusPlus(discount=0.5).algorithm().advantage([group_of([[0, 1.0], [0.0]])])
    expected = [0.125 / 0.5863020, 0.625 / 0.5863020, -0.375 / 0.5863020, 0.0]
    assert found.flatten().tolist() == near(expected)


def test_a_reward_counts_for_the_turns_up_to_it() -> None:
    # G = (1, 0) and (0, 0): mean .25, variance (.5625 + .0625) / 2 + .0625 = .375
    group = group_of([[1.0, 0.0], [0.0, 0.0]])
    (found,) = ReinforcePlusPlus().algorithm().advantage([group])
    std = 0.375**0.5
    assert found.flatten().tolist() == near([0.75 / std, -0.25 / std, -0.25 / std, -0.25 / std])


def test_siblings_that_are_not_trained_on_do_not_count_but_are_judged() -> None:
    # mean .5 and std .7071068 of the first two; the third: 4.5 / .7071068
    group = replace(group_of([[1.0], [0.0], [5.0]]), selected=(True, True, False))
    assert each(ReinforcePlusPlus(), group) == near([0.7071068, -0.7071068, 6.3639610])


def test_loss_by_hand() -> None:
    assert two_trajectories_loss(ReinforcePlusPlus())[0] == near(1.11875)


def test_the_whole_chain_has_its_pinned_loss() -> None:
    assert chain_loss(ReinforcePlusPlus()) == near(0.05486998)


def test_a_discount_above_one_is_refused() -> None:
    with pytest.raises(ValueError, match=r"discount must be in \[0, 1\]"):
        ReinforcePlusPlus(discount=1.1)
