"""What the replay buffer draws, and in which order."""

import pytest
import torch

from made import made_group
from rewardswap.replay import ReplayBuffer


def drawn(buffer: ReplayBuffer, count: int) -> list[tuple[str, int]]:
    return [
        (group.task.id, n)
        for group in buffer.sample(count)
        for n, chosen in enumerate(group.selected)
        if chosen
    ]


def test_best_outcome_first_and_ties_by_larger_advantage() -> None:
    buffer = ReplayBuffer(capacity=100, seed=0)
    # a: one success of four (z = 1.73), b: three of four (z = .58), c: none
    buffer.add([made_group("a", (0, 0, 1, 0)), made_group("b", (1, 1, 1, 0))])
    buffer.add([made_group("c", (0, 0, 0, 0))])
    assert drawn(buffer, 1) == [("a", 2)]
    assert {task for task, _ in drawn(buffer, 3)} == {"b"}
    assert buffer.success_share() == pytest.approx(4 / 12)


def test_without_replacement_until_exhausted_then_refilled() -> None:
    buffer = ReplayBuffer(capacity=100, seed=0)
    buffer.add([made_group("a", (1, 0, 0)), made_group("b", (1, 0, 0))])
    first = drawn(buffer, 4) + drawn(buffer, 2)
    assert len(set(first)) == 6
    assert buffer.refills == 0
    assert len(set(drawn(buffer, 5))) == 5
    assert buffer.refills == 1


def test_selection_keeps_the_whole_group_and_marks_it_replayed() -> None:
    buffer = ReplayBuffer(capacity=100, seed=0)
    buffer.add([made_group("a", (0, 1, 0)).with_column("behavior_logprob", torch.zeros(3, 3, 3))])
    (group,) = buffer.sample(1)
    assert group.replayed
    assert len(group.trajectories) == 3
    assert group.selected == (False, True, False)
    assert "behavior_logprob" in group.columns


def test_ties_are_drawn_by_seed_alone() -> None:
    orders = []
    for seed in (1, 1, 2):
        buffer = ReplayBuffer(capacity=100, seed=seed)
        buffer.add([made_group(str(g), (0, 0, 0, 0)) for g in range(4)])
        orders.append([drawn(buffer, 1)[0] for _ in range(8)])
    assert orders[0] == orders[1] != orders[2]


def test_what_exceeds_the_capacity_is_counted() -> None:
    buffer = ReplayBuffer(capacity=2, seed=0)
    buffer.add([made_group("a", (0, 1, 0, 1))])
    assert (len(buffer), buffer.evicted) == (2, 2)
    assert sorted(drawn(buffer, 2)) == [("a", 1), ("a", 3)]


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="capacity"):
        ReplayBuffer(capacity=0, seed=0)
    with pytest.raises(ValueError, match="holds 0 trajectories, 1 were asked"):
        ReplayBuffer(capacity=5, seed=0).sample(1)
