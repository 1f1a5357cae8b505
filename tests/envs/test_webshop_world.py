"""The shop as a world: tasks, what an action leads to, and the potential."""

from random import Random

import pytest
from jaxtyping import TypeCheckError
from small_shop import MUG, SHIRT, small_catalogue
from stocked_shop import PLAIN_MUGS, stocked_catalogue

from rewardswap.envs.base import Observation
from rewardswap.envs.webshop import ShopWorld
from rewardswap.envs.webshop.splits import goal_id
from rewardswap.envs.webshop.world import SEARCH, ShopEnvironment
from rewardswap.types import Task

WIN = [
    "search[blue mug]",
    f"click[{MUG.lower()}]",
    "click[dark blue]",
    "click[small]",
    "click[buy now]",
]


@pytest.fixture(scope="module")
def world() -> ShopWorld:
    return ShopWorld(stocked_catalogue())


def task_of(world: ShopWorld, number: int) -> Task:
    """The task of a goal by its place in the catalogue."""
    goal = world.catalogue.goals[number]
    return Task(goal_id(goal), goal["category"], goal["asin"])


def begun(world: ShopWorld, number: int = 0) -> tuple[ShopEnvironment, Observation]:
    environment = world.make()
    return environment, environment.reset(task_of(world, number))


def test_a_task_is_a_goal_with_its_category_and_product(world: ShopWorld) -> None:
    mugs = [task for task in world.tasks("train") if task.origin == MUG]
    assert sorted(task.id for task in mugs) == sorted(goal_id(g) for g in world.catalogue.goals[:4])
    assert {task.family for task in mugs} == {"garden"}
    for split in ("train", "valid", "test"):
        ids = [task.id for task in world.tasks(split)]
        assert ids == sorted(ids)


def test_a_visit_that_buys_what_was_asked_for(world: ShopWorld) -> None:
    environment, first = begun(world)
    assert first.text.startswith("WebShop [SEP] Instruction: [SEP] Find me easy clean mugs")
    assert first.admissible == (SEARCH,)
    assert first.progress == 0.0
    steps = [environment.step(action) for action in WIN]
    assert all(step.valid for step in steps)
    assert [step.terminated for step in steps] == [step.success for step in steps]
    assert [step.success for step in steps] == [False] * 4 + [True]
    assert [step.outcome for step in steps] == [0.0] * 4 + [1.0]
    assert [step.task_score for step in steps] == [None] * 4 + [1.0]
    # easy clean, two options, the price: each is a quarter
    assert [step.observation.progress for step in steps] == [0.0, 0.5, 0.75, 1.0, 1.0]
    assert steps[-1].observation.admissible == ()
    with pytest.raises(ValueError, match=r"over already; call reset\(task\) before step\('look'\)"):
        environment.step("look")


def test_a_purchase_that_lacks_something_has_a_score_and_no_success(world: ShopWorld) -> None:
    environment, _ = begun(world)
    last = [environment.step(action) for action in (*WIN[:3], WIN[4])][-1]
    assert (last.terminated, last.success, last.outcome, last.task_score) == (True, False, 0, 0.75)
    assert last.observation.progress == 0.75


def test_the_potential_is_the_reward_of_buying_now(world: ShopWorld) -> None:
    environment, _ = begun(world)
    seen = [environment.step(action).observation.progress for action in WIN[:4]]
    pages = ("features", "< prev", "description", "< prev", "reviews")
    assert [environment.step(f"click[{page}]").observation.progress for page in pages] == [1.0] * 5
    assert environment.step("click[< prev]").observation.progress == seen[-1] == 1.0
    assert environment.step("click[red]").observation.progress == 0.75
    assert environment.step("click[< prev]").observation.progress == 0.0  # options are forgotten
    assert environment.step("click[b000000011]").observation.progress == 0.5
    assert environment.step("click[back to search]").observation.progress == 0.0
    environment.step("search[linen shirt]")
    # no noun in common with a mug's name
    assert environment.step(f"click[{SHIRT.lower()}]").observation.progress == 0.0


def test_the_potential_at_the_end_is_the_score_whatever_is_bought(world: ShopWorld) -> None:
    random = Random(0)
    environment = world.make()
    for task in (*world.tasks("train"), *world.tasks("valid")):
        observation = environment.reset(task)
        while True:
            action = random.choice(observation.admissible)
            step = environment.step("search[blue mug]" if action == SEARCH else action)
            if step.terminated:
                assert step.observation.progress == step.task_score == observation.progress
                break
            observation = step.observation


def test_what_can_be_done_is_in_the_pages_order(world: ShopWorld) -> None:
    environment, _ = begun(world)
    results = environment.step("search[mug number 1 2 3]").observation.admissible
    assert results[:2] == ("click[back to search]", "click[next >]")
    assert results[2] == "click[b000000011]"
    assert len(results) == 2 + 10
    environment.step("search[linen shirt]")
    item = environment.step(f"click[{SHIRT.lower()}]").observation.admissible
    # its values "same" of two options, "buy now" and "search" are one, the button, and nothing
    assert item == (
        *("click[back to search]", "click[< prev]", "click[description]", "click[features]"),
        *("click[reviews]", "click[buy now]", "click[same]", 'click[5"]'),
    )


def test_a_text_that_no_action_can_name_is_not_offered() -> None:
    catalogue = stocked_catalogue()
    product = catalogue.products[PLAIN_MUGS[1]]
    strange = ("a[b", "c]", "d\ne", "[f]", "")
    object.__setattr__(product, "options", {"kind": strange})
    environment, _ = begun(ShopWorld(catalogue))
    environment.step("search[mug number 1]")
    page = environment.step(f"click[{product.asin.lower()}]").observation
    assert page.admissible[6:] == ("click[c]]",)
    assert environment.step("click[c]]").valid


@pytest.mark.parametrize("mode", ["text", "text_rich", "short"])
def test_every_admissible_action_is_valid_and_every_other_changes_nothing(mode: str) -> None:
    world = ShopWorld(stocked_catalogue(), mode=mode)
    environment, observation = begun(world)
    random = Random(1)
    for _ in range(300):
        page = observation.text
        for action in ("click[search]", "click[b00000000x]", "Search[mug]", "search[]", "look", ""):
            step = environment.step(action)
            assert not step.valid and not step.terminated
            assert step.observation.state_key == observation.state_key
            assert step.observation.admissible == observation.admissible
            assert step.observation.text == page or mode == "short"
        step = environment.step(random.choice(observation.admissible))
        assert step.valid
        observation = step.observation
        if step.terminated:
            observation = environment.reset(random.choice(world.tasks("train")))


def test_a_search_is_valid_on_every_page_but_offered_on_the_first_only(world: ShopWorld) -> None:
    environment, _ = begun(world)
    for action in WIN[:3]:
        assert SEARCH not in environment.step(action).observation.admissible
    step = environment.step("search[linen shirt]")
    assert step.valid
    assert f"click[{SHIRT.lower()}]" in step.observation.admissible
    assert not environment.step(f"click[{MUG.lower()}]").valid


def test_reset_is_exact_also_after_another_goal(world: ShopWorld) -> None:
    environment, first = begun(world)
    for action in WIN:
        environment.step(action)
    assert environment.reset(task_of(world, 12)).text != first.text
    assert environment.reset(task_of(world, 0)) == first


def test_step_before_reset_and_after_close(world: ShopWorld) -> None:
    environment = world.make()
    with pytest.raises(ValueError, match="not begun"):
        environment.step("look")
    environment.reset(task_of(world, 0))
    environment.close()
    with pytest.raises(ValueError, match="not begun"):
        environment.step("look")


def test_unknown_things_are_named(world: ShopWorld) -> None:
    with pytest.raises(ValueError, match=r"'moon', this world has \['test', 'train', 'valid'\]"):
        world.tasks("moon")
    with pytest.raises(ValueError, match=r"unknown task 'nobody' \(garden\)"):
        world.make().reset(Task("nobody", "garden"))
    with pytest.raises(ValueError, match="turn_limit is 0"):
        ShopWorld(stocked_catalogue(), turn_limit=0)
    with pytest.raises((ValueError, TypeCheckError), match="'html'"):
        ShopWorld(stocked_catalogue(), mode="html")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'valid' is empty"):
        ShopWorld(small_catalogue())
    with pytest.raises(ValueError, match="has 22"):
        ShopWorld(stocked_catalogue(), upstream_split=True)


def test_the_system_text_is_for_full_sentences_only(world: ShopWorld) -> None:
    assert "search[" in world.instructions and "click[" in world.instructions
    assert ShopWorld(stocked_catalogue(), mode="text_rich").instructions == world.instructions
    assert ShopWorld(stocked_catalogue(), mode="short").instructions == ""
    assert (world.turn_limit, ShopWorld(stocked_catalogue(), turn_limit=3).turn_limit) == (15, 3)


def test_a_worth_is_computed_once() -> None:
    world = ShopWorld(stocked_catalogue())
    for _ in range(3):
        environment, _ = begun(world)
        for action in WIN:
            environment.step(action)
    # nowhere, and the mug with no, one and two options
    assert world.worth.cache_info().misses == 4
