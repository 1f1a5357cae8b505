"""What is counted as repeated, how far siblings are apart, when turn rewards have collapsed."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from made import made_trajectory
from rewardswap.diversity import diversity, turn_reward_spread
from rewardswap.types import Group, Trajectory


def played(task: str, actions: str, states: str | None = None) -> Trajectory:
    """One letter for each action, and for each state in which it is taken."""
    made = made_trajectory(task, lengths=((2, 1),) * len(actions))
    turns = [
        replace(turn, action=action, state_key=state)
        for turn, action, state in zip(made.turns, actions, states or actions, strict=True)
    ]
    return replace(made, turns=tuple(turns))


def group_of(task: str, *played_by: Trajectory | str) -> Group:
    members = tuple(played(task, t) if isinstance(t, str) else t for t in played_by)
    return Group(members[0].task, members)


def test_a_state_is_repeated_whoever_comes_back_to_it() -> None:
    groups = [
        # s: both siblings, x: one sibling twice, y and z: once
        group_of("a", played("a", "....", "sxxy"), played("a", "..", "sz")),
        # the same keys in another task are other states
        group_of("b", played("b", "..", "sy")),
    ]
    metrics = diversity(groups)
    assert metrics["repeated_states"] == 2
    assert metrics["distinct_states"] == 4 + 2
    # of eight visits, two were not the first
    assert metrics["revisit_share"] == pytest.approx(1 - 6 / 8)


def test_edit_distance_by_hand() -> None:
    # "abcd" -> "abd": one deletion of 4; "abcd" -> "xbcd": one substitution of 4;
    # "abd" -> "xbcd": a substitution and an insertion, of 4
    metrics = diversity([group_of("a", "abcd", "abd", "xbcd")])
    assert metrics["edit_distance_pairs"] == 3
    assert metrics["edit_distance"] == pytest.approx((1 / 4 + 1 / 4 + 2 / 4) / 3)


def test_pairs_are_of_one_task_whatever_group_they_are_in() -> None:
    assert "edit_distance" not in diversity([group_of("a", "ab"), group_of("b", "cd")])
    assert diversity([group_of("a", "ab"), group_of("a", "cd")])["edit_distance"] == 1
    metrics = diversity([group_of("a", "ab", "ab"), group_of("b", "ab", "cd")])
    assert (metrics["edit_distance"], metrics["edit_distance_pairs"]) == (0.5, 2)


def test_only_selected_trajectories_count() -> None:
    group = replace(group_of("a", "ab", "ab", "xy"), selected=(True, True, False))
    assert diversity([group]) == diversity([group_of("a", "ab", "ab")])


def test_nothing_is_nothing() -> None:
    assert diversity([]) == {
        "repeated_states": 0,
        "distinct_states": 0,
        "revisit_share": 0,
        "edit_distance_pairs": 0,
    }


ACTIONS = st.lists(st.text("abc", min_size=1, max_size=6), min_size=2, max_size=4)


@settings(max_examples=30, deadline=None)
@given(ACTIONS)
def test_the_order_of_siblings_says_nothing(actions: list[str]) -> None:
    first = diversity([group_of("a", *actions)])
    assert 0 <= first["edit_distance"] <= 1
    assert (first["edit_distance"] == 0) == (len(set(actions)) == 1)
    for order in list(permutations(actions))[:4]:
        assert diversity([group_of("a", *order)]) == pytest.approx(first)


def rewarded(rows: Sequence[Sequence[float]]) -> Group:
    group = group_of("a", *("a" * len(row) for row in rows))
    reward = torch.full((len(rows), group.turn_count), 100.0)  # what is masked is not read
    for n, row in enumerate(rows):
        reward[n, : len(row)] = torch.tensor(row)
    return group.with_rewards({"dense": reward}, reward)


def test_the_spread_of_turn_rewards_by_hand() -> None:
    metrics = turn_reward_spread([rewarded([[1, 0, 0], [1]]), rewarded([[0, 0]])], "dense")
    # 1 0 0 1 0 0: mean 1/3, variance 1/3 - 1/9 = 2/9
    assert metrics["turn_rewards_mean"] == pytest.approx(1 / 3)
    assert metrics["turn_rewards_deviation"] == pytest.approx((2 / 9) ** 0.5)
    assert metrics["turn_rewards_equal_share"] == pytest.approx(4 / 6)
    assert metrics["turn_rewards_collapsed"] == 0


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e3])
def test_a_collapse_is_one_at_every_scale(scale: float) -> None:
    def collapsed(*values: float) -> float:
        group = rewarded([[scale * value for value in values]])
        return turn_reward_spread([group], "dense")["turn_rewards_collapsed"]

    assert collapsed(0.7, 0.7, 0.7) == collapsed(0.0, 0.0) == 1
    assert collapsed(1.0, 1.001) == 1  # deviation .0005
    assert collapsed(1.0, 1.01) == collapsed(0.0, 1.0) == collapsed(-1.0, 1.0) == 0


def test_rewards_that_are_not_there() -> None:
    with pytest.raises(ValueError, match=r"no 'process' rewards, only \['dense'\]"):
        turn_reward_spread([rewarded([[1.0]])], "process")
    with pytest.raises(ValueError, match="at least one group"):
        turn_reward_spread([], "dense")
