"""What the replay buffer draws, and in which order."""

from collections import Counter
from typing import get_args

import pytest
import torch

from made import made_group
from rewardswap.replay import Order, ReplayBuffer, Unit


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


def one_by_one(buffer: ReplayBuffer, count: int) -> list[tuple[str, int]]:
    """`count` trajectories in the order in which they are drawn."""
    return [drawn(buffer, 1)[0] for _ in range(count)]


SHAPES = [(0.9, 0.5, 0.1, 0.5), (0.6, 0.6, 0.6, 0.6), (0.0, 1.0, 0.0, 1.0)]
GROUPS = [made_group(name, outcomes) for name, outcomes in zip("abc", SHAPES, strict=True)]
"""a (some spread), b (no spread) and c (most spread)."""


def filled(by: Order, seed: int = 0, unit: Unit = "trajectory") -> ReplayBuffer:
    buffer = ReplayBuffer(capacity=100, seed=seed, by=by, unit=unit)
    buffer.add(GROUPS)
    return buffer


def test_variance_draws_from_the_groups_that_disagree_most() -> None:
    order = [task for task, _ in one_by_one(filled("variance"), 12)]
    assert order == ["c"] * 4 + ["a"] * 4 + ["b"] * 4


def test_uniform_draws_by_lot_alone() -> None:
    counts = Counter(one_by_one(filled("uniform", seed), 1)[0] for seed in range(300))
    # twelve trajectories, 25 draws each expected: the outcome does not matter
    assert len(counts) == 12
    assert max(counts.values()) < 50
    assert min(counts.values()) > 8


def test_proportional_draws_by_outcome_and_failures_last() -> None:
    firsts = Counter(one_by_one(filled("proportional", seed), 1)[0] for seed in range(400))
    outcome = {(t, n): x for t, xs in zip("abc", SHAPES, strict=True) for n, x in enumerate(xs)}
    total = sum(outcome.values())
    for key, weight in outcome.items():
        expected = 400 * weight / total
        assert firsts[key] == pytest.approx(expected, abs=4 * expected**0.5 + 0.5)
    for seed in range(5):
        order = one_by_one(filled("proportional", seed), 12)
        assert set(order[10:]) == {("c", 0), ("c", 2)}


def test_highest_outcome_is_not_any_other_order() -> None:
    order = one_by_one(filled("highest_outcome"), 12)
    outcomes = [dict(zip("abc", SHAPES, strict=True))[task][n] for task, n in order]
    assert outcomes == sorted(outcomes, reverse=True)


@pytest.mark.parametrize("by", get_args(Order))
def test_every_order_is_the_seeds_and_draws_everything_once(by: Order) -> None:
    first, again, other = (one_by_one(filled(by, seed), 12) for seed in (3, 3, 4))
    assert first == again
    assert len(set(first)) == len(set(other)) == 12
    assert by == "highest_outcome" or first != other


def test_groups_are_drawn_whole_in_the_order_of_their_mean_rank() -> None:
    buffer = ReplayBuffer(capacity=100, seed=0, unit="group")
    buffer.add([made_group("a", (1, 0, 0, 0)), made_group("b", (1, 1, 1, 0))])
    # the one success of a ranks first of all, yet b's members rank better together
    assert one_by_one(buffer, 8) == [("b", n) for n in range(4)] + [("a", n) for n in range(4)]
    (whole,) = buffer.sample(4)
    assert whole.selected == (True,) * 4


def test_each_loop_draws_lots_of_its_own() -> None:
    buffer, orders = ReplayBuffer(capacity=100, seed=0, by="uniform"), []
    for _ in range(2):
        buffer.add(
            [made_group(name, outcomes) for name, outcomes in zip("abc", SHAPES, strict=True)]
        )
        orders.append(one_by_one(buffer, 12))
        buffer.clear()
        assert len(buffer) == 0
    assert orders[0] != orders[1]
