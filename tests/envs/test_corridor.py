"""The corridor: rules, splits, and that its task ids mean its start states."""

import pytest

from rewardswap.envs.base import Environment, World
from rewardswap.envs.corridor import MOVES, CorridorGame, CorridorWorld


def test_a_walk_worked_out_by_hand() -> None:
    world = CorridorWorld(rooms=5)
    environment = world.make()
    first = environment.reset(CorridorGame(start=1, light=3, rooms=5).task)
    assert first.text == "room 1 light east"
    assert first.admissible == ("east",)
    assert first.progress == 0.5  # two rooms away, four at most
    against_the_wall = environment.step("west")
    assert not against_the_wall.valid
    assert against_the_wall.observation == first
    nearer = environment.step("east")
    assert nearer.valid and not nearer.terminated
    assert (nearer.observation.text, nearer.observation.progress) == ("room 2 light east", 0.75)
    assert not environment.step("go east").valid
    won = environment.step("east")
    assert won.terminated and won.success and won.outcome == 1.0
    assert (won.observation.text, won.observation.progress) == ("room 3 light here", 1.0)
    with pytest.raises(ValueError, match="call reset"):
        environment.step("east")


@pytest.mark.parametrize("split", ["train", "held_out"])
def test_the_side_that_is_named_wins_every_game(split: str) -> None:
    world = CorridorWorld()
    for task in world.tasks(split):
        environment = world.make()
        text = environment.reset(task).text
        steps = 0
        while not text.endswith("here"):
            step = environment.step(text.split()[-1])
            text, steps = step.observation.text, steps + 1
        assert step.success and steps <= world.turn_limit
        environment.close()


def test_splits_are_disjoint_and_whole() -> None:
    world = CorridorWorld(rooms=6)
    train, held_out = world.tasks("train"), world.tasks("held_out")
    assert (len(train), len(held_out)) == (22, 8)  # 15 pairs of rooms, 4 held out
    assert len({task.id for task in (*train, *held_out)}) == 30
    assert CorridorWorld(rooms=6).tasks("train") == train
    assert {task.family for task in train} == {"near", "far"}
    for tasks in (train, held_out):
        sides = [world.make().reset(task).text.split()[-1] for task in tasks]
        assert sides.count("east") == sides.count("west")


def test_state_keys_name_states() -> None:
    world = CorridorWorld(rooms=4)
    keys = set()
    for task in (*world.tasks("train"), *world.tasks("held_out")):
        keys.add(world.make().reset(task).state_key)
    assert len(keys) == 12
    environment = world.make()
    start = environment.reset(CorridorGame(2, 4, 4).task)
    environment.step("west")
    assert environment.step("east").observation.state_key == start.state_key


def test_it_keeps_the_contract_of_worlds() -> None:
    world = CorridorWorld()
    assert isinstance(world, World) and isinstance(world.make(), Environment)
    assert set(MOVES) == {"west", "east"}


def test_bad_calls_name_the_way_out() -> None:
    world = CorridorWorld(rooms=4)
    with pytest.raises(ValueError, match=r"unknown split 'test'.*'held_out', 'train'"):
        world.tasks("test")
    with pytest.raises(ValueError, match=r"take one of CorridorWorld\.tasks"):
        world.make().reset(CorridorGame(1, 6, 6).task)
    with pytest.raises(ValueError, match="2 rooms"):
        CorridorWorld(rooms=2)
    with pytest.raises(ValueError, match="call reset"):
        world.make().step("east")
