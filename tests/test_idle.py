"""The simulation of idle devices, by hand."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

BENCHMARK = Path(__file__).parents[1] / "benchmarks" / "idle.py"


@pytest.fixture(scope="module")
def idle() -> ModuleType:
    spec = importlib.util.spec_from_file_location("idle", BENCHMARK)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["idle"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


A = [(2.0, 3.0), (4.0, 1.0)]
B = [(4.0, 0.0)]
C = [(2.0, 0.0)]


def test_in_lock_step_the_slowest_decides_every_turn(idle: ModuleType) -> None:
    """Turn 0: 2 steps of 2 s, 2 of 1.5 s, then 3 s in the environment; turn 1: 4 of 1.5 s, 1 s."""
    machine = idle.Machine(decode=1.0, decode_each=0.5)
    measured = idle.lock_step(machine, [[A, B]], devices=1)
    assert measured == pytest.approx((17, 13 / 17, (2 * 4 + 3 + 6) / (2 * 17)))
    assert idle.lock_step(machine, [[A, B], [A, B]], devices=1).seconds == 34
    # apart each decodes alone, at 1.5 s: 4 steps, 3 s in the environment; 4 steps, 1 s
    assert idle.lock_step(machine, [[A, B]], devices=2).seconds == 6 + 3 + 6 + 1


def test_at_its_own_pace_a_turn_waits_for_nobody(idle: ModuleType) -> None:
    """A decodes to 4 and steps to 7, B decodes to 7; A alone to 13 and steps to 14."""
    machine = idle.Machine(decode=1.0, decode_each=0.5, environments=2)
    measured = idle.refilled(machine, [A, B], devices=1)
    assert measured == pytest.approx((14, 13 / 14, 17 / 28))
    # C takes B's slot at 7: both to 11, then A alone to 14, and its step
    assert idle.refilled(machine, [A, B, C], devices=1).seconds == pytest.approx(15)


@pytest.mark.parametrize(("training", "seconds"), [(5.0, 20.0), (50.0, 50.0)])
def test_one_step_off_takes_as_long_as_the_longer_of_both(
    idle: ModuleType, training: float, seconds: float
) -> None:
    machine = idle.Machine(decode=1.0, decode_each=0.5, environments=1)
    batches = [[[(10.0, 0.0)], [(10.0, 0.0)]]] * 9  # 10 steps of two sequences: 20 s
    measured = idle.one_step_off(machine, batches, [training] * 9, devices=2, rolling=1)
    busy = (20 + training) / (2 * seconds)
    assert measured == pytest.approx((seconds, busy, 20 / seconds))


def test_no_episode_begins_before_the_update_that_it_may_follow(idle: ModuleType) -> None:
    """With room for all, batch 2 waits for the update on batch 0: 10 s decoding, 30 s learning."""
    machine = idle.Machine(decode=1.0, decode_each=0.0, environments=50)
    batches = [[[(10.0, 0.0)]]] * 9
    measured = idle.one_step_off(machine, batches, [30.0] * 9, devices=2, rolling=1)
    assert measured.seconds == pytest.approx(30)
    measured = idle.one_step_off(machine, batches, [1.0] * 9, devices=2, rolling=1)
    assert measured.seconds == pytest.approx(11 / 2)  # two batches at once, then their updates


def test_every_episode_ends_once_and_all_its_tokens_are_decoded(idle: ModuleType) -> None:
    world = idle.World(turn_cap=6, turns=(1, 4))
    episodes = world.episodes(40, np.random.default_rng(0))
    machine = idle.Machine(decode=1.0, decode_each=0.0, environments=4)
    rollout = idle.Rollout(machine, 2, 4)
    waiting = iter(enumerate(episodes))
    for _ in range(8):
        assert rollout.start(0.0, *next(waiting))
    assert not rollout.start(0.0, 99, A)
    ended = []
    for now, key in rollout.ends():
        ended.append(key)
        if (following := next(waiting, None)) is not None:
            rollout.start(now, *following)
    assert sorted(ended) == list(range(40))
    tokens = sum(length for episode in episodes for length, _ in episode)
    assert rollout.decoded == pytest.approx(tokens)  # a second each: one step a token
    again = idle.refilled(machine, episodes, devices=2)
    assert idle.refilled(machine, episodes, devices=2) == again
