"""An alarm halves k, quiet loops double it."""

import json

import pytest

from rewardswap.loops.k_schedule import KSchedule, PhaseLengths


def lengths(schedule: KSchedule) -> tuple[int, int]:
    return schedule.explore_steps, schedule.learn_steps


def test_an_alarm_halves_both_phases_down_to_one_update() -> None:
    schedule = KSchedule(PhaseLengths(), 10, 3)
    found = []
    for _ in range(4):
        schedule.alarm()
        schedule.end_loop()
        found.append(lengths(schedule))
    assert found == [(5, 1), (2, 1), (1, 1), (1, 1)]


def test_one_loop_is_halved_once() -> None:
    schedule = KSchedule(PhaseLengths(), 8, 8)
    schedule.alarm()
    schedule.alarm()
    assert lengths(schedule) == (4, 4)


def test_replay_only_stays_replay_only() -> None:
    schedule = KSchedule(PhaseLengths(1), 0, 4)
    schedule.alarm()
    assert lengths(schedule) == (0, 2)


def test_healthy_loops_in_a_row_double_it_up_to_the_start() -> None:
    schedule = KSchedule(PhaseLengths(2), 3, 4)
    alarms = [True, False, True, False, False, False, False, False, False]
    found = []
    for alarm in alarms:
        if alarm:
            schedule.alarm()
        schedule.end_loop()
        found.append(lengths(schedule))
    # halved twice; doubled after the second and the fourth quiet loop, then at its start
    assert found == [(1, 2), (1, 2), (1, 1), (1, 1), (2, 2), (2, 2), (3, 4), (3, 4), (3, 4)]


def test_without_the_setting_it_never_doubles() -> None:
    schedule = KSchedule(PhaseLengths(), 4, 4)
    schedule.alarm()
    for _ in range(50):
        schedule.end_loop()
    assert lengths(schedule) == (2, 2)


def test_it_goes_on_from_its_state() -> None:
    schedule, other = (KSchedule(PhaseLengths(2), 8, 8) for _ in range(2))
    schedule.alarm()
    other.restore(json.loads(json.dumps(schedule.state())))
    for each in (schedule, other):
        each.alarm()  # still the same loop
        for _ in range(3):
            each.end_loop()
    assert lengths(schedule) == lengths(other) == (8, 8)
    assert schedule.state() == other.state()


def test_bad_settings() -> None:
    with pytest.raises(ValueError, match="healthy_loops must be at least 1, got 0"):
        PhaseLengths(0)
