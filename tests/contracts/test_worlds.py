"""What every world and environment must do, whichever it is."""

from collections.abc import Callable
from functools import partial

import pytest

from rewardswap.envs.alfworld.generator import GeneratedWorld
from rewardswap.envs.base import Environment, Observation, PromptStyle, Step, World
from rewardswap.envs.corridor import CorridorWorld
from rewardswap.envs.webshop import ShopWorld
from rewardswap.envs.webshop.synthetic import synthetic_catalogue
from rewardswap.types import Task

generated = partial(GeneratedWorld, seed=0, train=6, held_out=6, turn_limit=8)
shop = partial(ShopWorld, synthetic_catalogue(seed=0, products=40))

HELD_OUT = ("train", "held_out")
BY_PRODUCT = ("train", "valid", "test")

WORLDS: dict[str, tuple[Callable[[], World], tuple[str, ...]]] = {
    "generated, short": (lambda: generated(style="short"), HELD_OUT),
    "generated, full": (lambda: generated(style="full"), HELD_OUT),
    "corridor": (lambda: CorridorWorld(), HELD_OUT),
    "shop, text": (lambda: shop(mode="text"), BY_PRODUCT),
    "shop, text_rich": (lambda: shop(mode="text_rich"), BY_PRODUCT),
    "shop, short": (lambda: shop(mode="short"), BY_PRODUCT),
}
"""Maker of a world, and the names of its splits."""


@pytest.fixture(params=WORLDS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def world(name: str) -> World:
    return WORLDS[name][0]()


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


def test_splits_are_fixed_distinct_and_disjoint(name: str, world: World) -> None:
    splits = [world.tasks(split) for split in WORLDS[name][1]]
    ids = [task.id for tasks in splits for task in tasks]
    assert all(splits)
    assert len(set(ids)) == len(ids)
    origins = [{task.origin for task in tasks} - {""} for tasks in splits]
    assert len(set().union(*origins)) == sum(map(len, origins))
    again = WORLDS[name][0]()
    assert [again.tasks(split) for split in WORLDS[name][1]] == splits
    with pytest.raises(ValueError, match=r"'moon'.*train"):
        world.tasks("moon")
    with pytest.raises(ValueError, match=r"'moon'.*train"):
        world.remarks("moon")
    assert all(isinstance(remark, str) for remark in world.remarks("train"))


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


def test_a_prompt_tells_the_turn_and_what_can_be_done(world: World) -> None:
    environment = world.make()
    first = environment.reset(world.tasks("train")[0])
    now = environment.step(first.admissible[0]).observation
    for style in world.prompt_styles.values():
        assert isinstance(style, PromptStyle)
        opening = style.prompt(first.text, (), 0, first)
        later = style.prompt(first.text, [(first.text, first.admissible[0])], 1, now)
        assert opening == style.prompt(first.text, (), 0, first) != later
        for text, observation in ((opening, first), (later, now)):
            assert all(command in text for command in observation.admissible if command != "help")
        assert first.admissible[0] in later
        action = f"<think>why</think><action>{first.admissible[0]}</action>"
        assert style.action(action) == (first.admissible[0].lower(), True)
    environment.close()


def test_a_task_of_another_world_is_refused(world: World) -> None:
    with pytest.raises(ValueError, match="of-another-world"):
        world.make().reset(Task("of-another-world", "none"))
