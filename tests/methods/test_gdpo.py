"""GDPO by hand."""

import pytest
from worked import chain_loss, each, group_of, near, two_trajectories_loss

from rewardswap.methods.gdpo import GDPO

BOTH = group_of([[0.0], [1.0]], members={0: {"invalid": [0]}})
"""The second is better in return and in valid actions."""
EITHER = group_of([[0.0], [1.0]], task="b", members={1: {"invalid": [0]}})
"""The second is better in return and worse in valid actions."""


def test_rewards_are_normalised_before_they_are_added() -> None:
    # z = +-.5 / (.7071068 + 1e-4) = +-.7070068: s = -+1.4140136, 0, 0
    # std sqrt(2 x 1.4140136^2 / 3) = 1.1545373: 1.4140136 / 1.1546373 = 1.2246388
    found = each(GDPO(weights=(1.0, 1.0)), BOTH, EITHER)
    assert found == near([-1.2246388, 1.2246388, 0.0, 0.0])


def test_the_default_weighs_valid_actions_a_tenth() -> None:
    # s = -+1.1 z, -+.9 z: std z sqrt(2 (1.21 + .81) / 3) = .8204534
    z, std = 0.7070068, 0.8204534 + 1e-4
    expected = [-1.1 * z / std, 1.1 * z / std, -0.9 * z / std, 0.9 * z / std]
    assert each(GDPO(), BOTH, EITHER) == near(expected)


def test_a_summed_reward_would_lose_what_the_two_differ_in() -> None:
    # one reward differs, or both: the second pair lies twice as far apart
    same = group_of([[0.0], [1.0]])
    first = each(GDPO(weights=(1.0, 1.0)), same, BOTH)
    assert first[3] == near(2 * first[1])


def test_shares_and_lengths_of_turns() -> None:
    # valid 1/2 and 1; brevity -2 and -1: each z is -+.7070068 with weight 1 and 3, whitened
    group = group_of([[0.0, 1.0], [1.0]], members={0: {"invalid": [1]}})
    rewards = ("in_force", "valid_actions", "brevity")
    found = each(GDPO(rewards=rewards, weights=(1.0, 1.0, 3.0)), group)
    score = 4 * 0.7070068
    assert found == near([-score / (score * 2**0.5 + 1e-4), score / (score * 2**0.5 + 1e-4)])


def test_a_batch_with_nearly_no_signal_is_not_blown_up() -> None:
    found = each(GDPO(weights=(1e-4, 1e-4)), BOTH, EITHER)
    assert found == near([-1.4140136e-4, 1.4140136e-4, 0.0, 0.0], 1e-9)


def test_loss_by_hand() -> None:
    assert two_trajectories_loss(GDPO())[0] == near(1.11875)


def test_the_whole_chain_has_its_pinned_loss() -> None:
    assert chain_loss(GDPO()) == near(0.21256621)


@pytest.mark.parametrize(
    ("rewards", "weights", "message"),
    [
        (("in_force", "beauty"), (1.0, 1.0), "unknown reward 'beauty'"),
        (("valid_actions",), (1.0,), "hold in_force"),
        (("in_force", "in_force"), (1.0, 1.0), "distinct"),
        (("in_force",), (1.0, 2.0), "1 rewards need as many weights, got 2"),
    ],
)
def test_rewards_that_make_no_sense_are_refused(
    rewards: tuple[str, ...], weights: tuple[float, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        GDPO(rewards=rewards, weights=weights)
