"""What a visit is, when it is counted, and that no order changes a score."""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations

import pytest
import torch

from made import made_trajectory
from rewardswap.rewards.novelty import NoveltyReward
from rewardswap.types import Group


def walk(task: str, *paths: str, end: str = "over") -> Group:
    """One letter for each state in which an action was taken; then the end."""
    members = []
    for states in paths:
        made = made_trajectory(task, lengths=((2, 1),) * len(states))
        turns = [replace(t, state_key=s) for t, s in zip(made.turns, states, strict=True)]
        members.append(replace(made, turns=tuple(turns), final_observation=end))
    return Group(members[0].task, tuple(members))


def rounded(scores: torch.Tensor) -> list[list[float]]:
    return [[round(float(x), 4) for x in row] for row in scores]


def test_a_turn_is_worth_the_rarity_of_the_state_that_it_leads_to() -> None:
    reward, group = NoveltyReward(), walk("a", "sxx", "sxz", "sy")
    reward.count([group])
    # arrivals: x 3, z 1, y 1, over 3; the start is nobody's arrival
    third = round(3**-0.5, 4)
    assert rounded(reward.score(group)) == [[third] * 3, [third, 1, third], [1, third, 0]]


def test_visits_add_up_over_batches_and_by_task() -> None:
    reward, group = NoveltyReward(), walk("a", "sx")
    for _ in range(4):
        reward.count([group])
    assert rounded(reward.score(group)) == [[0.5, 0.5]]
    # the same keys of another task, and another end, are on their first visit
    assert rounded(reward.score(walk("b", "sx"))) == [[1, 1]]
    assert rounded(reward.score(walk("a", "sx", end="another"))) == [[0.5, 1]]


def test_an_end_is_no_state_of_that_name() -> None:
    reward = NoveltyReward()
    reward.count([walk("a", "s", end="x")])
    assert rounded(reward.score(walk("a", "sx", end="y"))) == [[1, 1]]


def test_scoring_counts_nothing_and_no_order_matters() -> None:
    groups = [walk("a", "sx", "sy"), walk("a", "sx", "sz"), walk("b", "sx", "sx")]

    def scores(order: Sequence[int]) -> dict[int, list[list[float]]]:
        reward = NoveltyReward()
        reward.count([groups[g] for g in order])
        return {g: rounded(reward.score(groups[g])) for g in order}

    first = scores(range(3))
    assert all(scores(order) == first for order in permutations(range(3)))


def test_it_goes_on_from_its_state() -> None:
    reward, other = NoveltyReward(), NoveltyReward()
    reward.count([walk("a", "sxy", "sx")])
    other.restore(json.loads(json.dumps(reward.state())))
    for source in (reward, other):
        source.count([walk("a", "sx")])
    group = walk("a", "sxyz")
    assert torch.equal(reward.score(group), other.score(group))
    assert reward.state() == other.state()
    assert float(reward.score(group)[0, 0]) == pytest.approx(3**-0.5)
