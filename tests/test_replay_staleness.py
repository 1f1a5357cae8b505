"""How replayed trajectories age, and that no age at all is the paper's buffer."""

from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from made import made_group
from rewardswap.replay import Replay, ReplayBuffer, Unit
from rewardswap.replay_staleness import Staleness, StalenessReplay


def one_by_one(buffer: Replay, count: int) -> list[tuple[str, int]]:
    """`count` trajectories in the order in which they are drawn."""
    found = []
    for _ in range(count):
        (group,) = buffer.sample(1)
        found.append((group.task.id, group.selected.index(True)))
    return found


def aged(staleness: Staleness, capacity: int = 100) -> StalenessReplay:
    """Groups a, b and c of ages 2, 1 and 0."""
    buffer = StalenessReplay(capacity, 0, staleness)
    for name in "abc":
        buffer.add([made_group(name, (0.8, 0.0))])
        if name != "c":
            buffer.clear()
    return buffer


def test_the_priority_of_the_specification() -> None:
    staleness = Staleness(tau=2.0, beta=1.0)
    # .8, .8 / e^.5, .8 / e
    found = [staleness.priority(0.8, age) for age in (0, 1, 2)]
    assert found == pytest.approx([0.8, 0.48522, 0.29430], abs=5e-6)
    # beta 2: .64 at age 0; beta 0: age alone, for failures too
    assert Staleness(beta=2.0).priority(0.8, 0) == pytest.approx(0.64)
    assert Staleness(beta=0.0).priority(0.0, 0) == 1


def test_the_young_go_first_and_failures_last() -> None:
    order = one_by_one(aged(Staleness()), 6)
    assert order == [("c", 0), ("b", 0), ("a", 0), ("c", 1), ("b", 1), ("a", 1)]


def test_an_old_success_stands_before_a_young_half_success_as_tau_says() -> None:
    for tau, first in ((2.0, "old"), (1.0, "young")):  # 1 / e^.5 = .61, 1 / e = .37, against .5
        buffer = StalenessReplay(100, 0, Staleness(tau))
        buffer.add([made_group("old", (1.0, 0.0))])
        buffer.clear()
        buffer.add([made_group("young", (0.5, 0.0))])
        assert one_by_one(buffer, 1) == [(first, 0)]


def test_what_is_too_old_is_counted_apart_from_what_is_too_much() -> None:
    buffer = aged(Staleness(oldest=1))
    assert (len(buffer), buffer.expired, buffer.evicted) == (4, 2, 0)
    assert buffer.mean_age() == 0.5
    buffer = aged(Staleness(), capacity=3)
    # a and b fill three places of four; c makes it three of five
    assert (len(buffer), buffer.expired, buffer.evicted) == (3, 0, 1 + 2)
    assert {task for task, _ in one_by_one(buffer, 3)} == {"a", "b", "c"}


def test_what_the_capacity_left_out_does_not_come_back() -> None:
    buffer = StalenessReplay(2, 0, Staleness())
    buffer.add([made_group("a", (1, 1, 0, 0))])
    buffer.clear()
    assert sorted(one_by_one(buffer, 2)) == [("a", 0), ("a", 1)]
    # four siblings stay for the group's statistics, two of them may be drawn
    assert [len(group.trajectories) for group in buffer.groups] == [4]
    buffer.add([])
    assert (len(buffer), buffer.evicted) == (2, 2)


def test_a_group_without_a_drawable_trajectory_is_forgotten() -> None:
    buffer = StalenessReplay(2, 0, Staleness())
    buffer.add([made_group("a", (0, 0)), made_group("b", (1, 1))])
    buffer.clear()
    assert [group.task.id for group in buffer.stored()] == ["b"]


@pytest.mark.parametrize("tau", [0.0, 1e-9])
def test_without_age_a_loop_leaves_nothing(tau: float) -> None:
    buffer = StalenessReplay(3, 0, Staleness(tau))
    buffer.add([made_group("a", (1, 0, 0, 0))])
    buffer.clear()
    assert (len(buffer), buffer.expired, buffer.evicted, buffer.stored()) == (0, 3, 1, [])


STEPS = st.lists(
    st.one_of(
        st.lists(st.sampled_from([0.0, 0.3, 1.0]), min_size=1, max_size=4), st.sampled_from([0, 2])
    ),
    max_size=14,
)


@settings(max_examples=60, deadline=None)
@given(STEPS, st.sampled_from([0.0, 1e-9]), st.sampled_from([3, 100]), st.sampled_from(("", "b")))
def test_without_age_it_is_the_papers_buffer(
    steps: list[list[float] | int], tau: float, capacity: int, task: str
) -> None:
    for unit in get_args(Unit):
        plain = ReplayBuffer(capacity, 4, unit=unit)
        aging = StalenessReplay(capacity, 4, Staleness(tau), unit)
        for number, step in enumerate(steps):
            for buffer in (plain, aging):
                if isinstance(step, list):
                    buffer.add([made_group(task or str(number), step)])
                elif step == 0:
                    buffer.clear()
            count = min(2, len(plain))
            assert len(plain) == len(aging)
            assert one_by_one(plain, count) == one_by_one(aging, count)
        assert (plain.refills, plain.evicted) == (aging.refills, aging.evicted)
        assert plain.success_share() == aging.success_share()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [({"tau": -1.0}, "tau"), ({"beta": float("nan")}, "beta"), ({"oldest": -1}, "oldest")],
)
def test_bad_settings(wrong: dict[str, float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Staleness(**wrong)
