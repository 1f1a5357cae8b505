"""Equal shares of the harvest at each temperature."""

from collections import Counter

import pytest

from rewardswap.loops.temperature_ladder import TemperatureLadder


def test_whole_groups_in_equal_shares() -> None:
    assert TemperatureLadder().shares(6, 0) == [(0.7, 2), (1.0, 2), (1.3, 2)]


@pytest.mark.parametrize("tasks", [3, 7, 8, 14])
def test_what_does_not_divide_evens_out_over_loops(tasks: int) -> None:
    ladder, dealt = TemperatureLadder(), Counter[float]()
    # 7 of 3: one temperature has one task more, in the next loop another one
    for loop in range(10):
        shares = ladder.shares(tasks, loop)
        assert sum(count for _, count in shares) == tasks
        assert [temperature for temperature, _ in shares] == [0.7, 1.0, 1.3]
        dealt.update(dict(shares))
        assert max(dealt.values()) - min(dealt.values()) <= 1


@pytest.mark.parametrize("wrong", [(), (1.0,), (1.0, 1.0), (0.0, 1.0), (1.0, float("inf"))])
def test_bad_ladders(wrong: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match=r"ladder"):
        TemperatureLadder(wrong)


def test_fewer_tasks_than_temperatures() -> None:
    with pytest.raises(ValueError, match=r"2 tasks cannot be played at 3 temperatures"):
        TemperatureLadder().shares(2, 0)
