"""What the numbers of an update warn of."""

import pytest

from rewardswap.monitors import warnings_of


@pytest.mark.parametrize(
    ("metrics", "kinds"),
    [
        ({}, []),
        ({"turn_rewards_collapsed": 0.0, "engine_gap_max": 0.1}, []),
        ({"turn_rewards_collapsed": 1.0}, ["collapsed_dense_reward"]),
        ({"replay_edit_distance": 0.3}, []),
        ({"replay_edit_distance": 0.29}, ["homogeneous_replay"]),
        ({"replay_edit_distance": 0.0}, ["homogeneous_replay"]),
        ({"replay_size": 12.0, "replay_success_share": 0.0}, ["replay_without_success"]),
        ({"replay_size": 12.0, "replay_success_share": 0.1}, []),
        ({"replay_size": 0.0, "replay_success_share": 0.0}, []),
        ({"engine_gap_max": 0.11}, ["engine_gap"]),
    ],
)
def test_bounds_of_the_warnings(metrics: dict[str, float], kinds: list[str]) -> None:
    said = warnings_of(metrics)
    assert list(said) == kinds
    assert all("\n" not in words for words in said.values())
