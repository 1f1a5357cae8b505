"""What every world and environment must do, whichever it is."""

from collections.abc import Callable

import pytest

from rewardswap.envs.alfworld.generator import GeneratedWorld
from rewardswap.envs.base import Environment, Observation, Step, World
from rewardswap.envs.corridor import CorridorWorld

WORLDS: dict[str, Callable[[], World]] = {
    "generated, short": lambda: GeneratedWorld(
        seed=0, train=6, held_out=6, style="short", turn_limit=8
    ),
    "generated, full": lambda: GeneratedWorld(
        seed=0, train=6, held_out=6, style="full", turn_limit=8
    ),
    "corridor": lambda: CorridorWorld(),
}


@pytest.fixture(params=WORLDS)
def world(request: pytest.FixtureRequest) -> World:
    return WORLDS[request.param]()


def walk(environment: Environment, world: World, number: int = 0) -> list[Observation | Step]:
    """The first admissible commands of a game, with an impossible one in between."""
    seen: list[Observation | Step] = [environment.reset(world.tasks("train")[number])]
    admissible = seen[0].admissible if isinstance(seen[0], Observation) else ()
    for n in range(4):
        action = "fly to the moon" if n == 2 else admissible[n % len(admissible)]
        step = environment.step(action)
        seen.append(step)
        if step.terminated:
            break
        admissible = step.observation.admissible
    return seen


def test_splits_are_fixed_distinct_and_disjoint(world: World) -> None:
    splits = [world.tasks("train"), world.tasks("held_out")]
    ids = [[task.id for task in tasks] for tasks in splits]
    assert all(len(set(one)) == len(one) > 0 for one in ids)
    assert not set(ids[0]) & set(ids[1])
    assert [task.id for task in world.tasks("train")] == ids[0]
    with pytest.raises(ValueError, match=r"'moon'.*train"):
        world.tasks("moon")


def test_the_same_task_and_actions_give_the_same_words(world: World) -> None:
    one, other = world.make(), world.make()
    first = walk(one, world)
    assert walk(other, world) == first
    walk(one, world, 1)
    assert walk(one, world) == first
    one.close()
    other.close()


def test_an_impossible_action_is_invalid_and_the_game_goes_on(world: World) -> None:
    environment = world.make()
    observation = environment.reset(world.tasks("train")[0])
    step = environment.step("fly to the moon")
    assert not step.valid
    assert not step.terminated
    assert step.observation.text
    assert step.observation.state_key == observation.state_key
    environment.close()


def test_admissible_commands_are_valid(world: World) -> None:
    environment = world.make()
    task = world.tasks("train")[0]
    for command in environment.reset(task).admissible:
        environment.reset(task)
        assert environment.step(command).valid, command
    environment.close()


def test_outcome_and_progress_lie_between_0_and_1_and_success_ends(world: World) -> None:
    environment = world.make()
    for number in range(3):
        for seen in walk(environment, world, number):
            if isinstance(seen, Step):
                assert 0 <= seen.outcome <= 1
                assert 0 <= seen.observation.progress <= 1
                assert seen.terminated or not seen.success
    environment.close()


def test_a_task_of_another_world_is_refused(world: World) -> None:
    from rewardswap.types import Task

    with pytest.raises(ValueError, match="of-another-world"):
        world.make().reset(Task("of-another-world", "none"))
