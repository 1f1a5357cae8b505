"""Where faults happen, and that nothing else changes."""

from typing import Any, get_args

import pytest

from rewardswap.envs.base import World
from rewardswap.envs.corridor import CorridorWorld
from rewardswap.envs.faulty import SPOIL, Fault, FaultKind, FaultyWorld, forced

WORLD = CorridorWorld()
TASKS = WORLD.tasks("train")


def test_without_faults_it_is_the_world() -> None:
    world = FaultyWorld(WORLD, [])
    assert isinstance(world, World)
    assert (world.turn_limit, world.instructions) == (WORLD.turn_limit, WORLD.instructions)
    assert world.tasks("held_out") == WORLD.tasks("held_out")
    assert world.remarks("train") == WORLD.remarks("train")
    one, other = world.make(), WORLD.make()
    assert one.reset(TASKS[0]) == other.reset(TASKS[0])
    assert one.step("jump") == other.step("jump")


def test_a_fault_happens_at_its_task_and_turn() -> None:
    fault = Fault("raises", task=TASKS[1].id, turn=2)
    world = FaultyWorld(WORLD, [fault]).make()
    for task in (TASKS[0], TASKS[1], TASKS[1]):
        world.reset(task)
        world.step("jump")
        if task == TASKS[1]:
            with pytest.raises(RuntimeError, match="a fault was put in"):
                world.step("jump")
        else:
            world.step("jump")
    assert Fault("raises", turn=0).happens("any", [])
    assert not Fault("raises", turn=0).happens("any", ["jump"])


def test_a_share_is_drawn_by_task_actions_and_seed() -> None:
    places = [("t", [f"a{n}"]) for n in range(4000)]
    fault = Fault("nan", share=0.25)
    drawn = [fault.happens(*place) for place in places]
    assert 0.22 < sum(drawn) / len(drawn) < 0.28  # four standard errors are .027
    assert drawn == [Fault("nan", share=0.25).happens(*place) for place in places]
    assert drawn != [Fault("nan", share=0.25, seed=1).happens(*place) for place in places]
    assert not any(Fault("nan", share=0.0).happens(*place) for place in places)


def test_an_endless_episode_never_steps_the_world_behind_its_end() -> None:
    task = next(task for task in TASKS if task.family == "near")
    walk = WORLD.make()
    side = walk.reset(task).text.split()[-1]
    endless = FaultyWorld(WORLD, [Fault("never ends", turn=1)]).make()
    endless.reset(task)
    for _ in range(6):
        step = endless.step(side)
        assert not (step.terminated or step.success)
    assert endless.reset(task) == walk.reset(task)


def test_every_kind_is_known_and_bad_faults_are_refused() -> None:
    assert set(SPOIL) == set(get_args(FaultKind))
    bad: list[tuple[dict[str, Any], str]] = [
        ({"kind": "raises", "turn": -1}, "turn must be at least 0, got -1"),
        ({"kind": "raises", "share": 1.5}, r"share must be in \[0, 1\], got 1.5"),
        ({"kind": "slow", "seconds": float("nan")}, "seconds must be at least 0 and finite"),
    ]
    for settings, words in bad:
        with pytest.raises(ValueError, match=words):
            Fault(**settings)
    with pytest.raises(ValueError, match="unknown fault 'melts', take one of"):
        forced(Fault("raises"), kind="melts").__post_init__()
