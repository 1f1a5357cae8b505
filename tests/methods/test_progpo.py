"""ProGPO by hand."""

import pytest
from worked import chain_loss, each, episode, group_of, near, two_trajectories_loss

from rewardswap.methods.progpo import ProGPO, novelty
from rewardswap.types import Group


def failed(task: str = "f") -> Group:
    """Two failures: one of two turns saw something new, and both of two."""
    seen = (["lobby", "hall", "lobby"], ["lobby", "hall", "yard"])
    members = {n: {"observations": seen[n]} for n in range(2)}
    return group_of([[0.0, 0.0], [0.0, 0.0]], task=task, members=members)


MIXED = group_of([[0.0], [1.0]], task="m")
SOLVED = group_of([[1.0], [1.0]], task="s")


def test_novelty_is_the_share_of_turns_with_a_new_text() -> None:
    # room A and Room A are new, the second room A and the lobby are not
    seen = ["lobby", "room A", "room A", "lobby", "Room A"]
    assert novelty(episode("a", 0, [1] * 4, observations=seen)) == 0.5


def test_a_group_that_failed_learns_from_progress() -> None:
    # one of three groups failed: .3 / 3 = .1; progress .5 and 1: +-.25 over .25
    found = each(ProGPO(), MIXED, failed(), SOLVED)
    assert found == near([-0.7071058, 0.7071058, -0.1, 0.1, 0.0, 0.0])


def test_the_weight_is_the_strength_times_the_share_of_failed_groups() -> None:
    assert each(ProGPO(), failed()) == near([-0.3, 0.3])
    assert each(ProGPO(strength=1.0), failed(), MIXED)[:2] == near([-0.5, 0.5])
    assert each(ProGPO(strength=0.0), failed()) == [0.0, 0.0]


def test_equal_progress_teaches_nothing() -> None:
    assert each(ProGPO(), group_of([[0.0], [0.0]])) == [0.0, 0.0]


def test_a_failed_group_with_a_dense_reward_keeps_its_own_advantages() -> None:
    dense = group_of([[0.2, 0.0], [0.0, 0.1]], outcomes=[0.0, 0.0])
    assert each(ProGPO(), dense) == near([0.7070968, -0.7070968], 1e-5)


def test_equal_dense_rewards_of_a_failed_group_fall_back_too() -> None:
    group = failed().with_rewards({}, failed().reward_in_force + 0.1)
    assert each(ProGPO(), group) == near([-0.3, 0.3])


def test_loss_by_hand() -> None:
    assert two_trajectories_loss(ProGPO())[0] == near(1.11875)


def test_the_whole_chain_has_its_pinned_loss() -> None:
    assert chain_loss(ProGPO()) == near(0.14050547)


def test_a_negative_strength_is_refused() -> None:
    with pytest.raises(ValueError, match="strength must be at least 0"):
        ProGPO(strength=-0.1)
