"""The shopper that writes demonstrations: careful, it mostly succeeds; with bad habits, it errs."""

from random import Random

import pytest

from rewardswap.envs.webshop.shopper import Habits, Shopper
from rewardswap.envs.webshop.synthetic import synthetic_catalogue
from rewardswap.envs.webshop.world import ShopWorld


@pytest.fixture(scope="module")
def world() -> ShopWorld:
    return ShopWorld(synthetic_catalogue(seed=0, products=600), mode="short", turn_limit=15)


def visit(world: ShopWorld, habits: Habits, number: int) -> tuple[list[str], float]:
    """What a shopper does for one goal of the training split, and the score that it gets."""
    task = world.tasks("train")[number]
    goal = world.catalogue.goals[world.goal_number(task)]
    shopper = Shopper(world.catalogue, goal, Random(number), habits)
    environment = world.make()
    observation = environment.reset(task)
    actions: list[str] = []
    while len(actions) < world.turn_limit:
        actions.append(shopper.act(environment.place, observation.admissible))
        step = environment.step(actions[-1])
        if step.terminated:
            return actions, step.task_score
        observation = step.observation
    return actions, 0.0


def mean_score(world: ShopWorld, habits: Habits, *, full_only: bool = True) -> float:
    scores = [visit(world, habits, number)[1] for number in range(120)]
    return sum(score == 1.0 if full_only else score for score in scores) / len(scores)


def test_a_careful_shopper_mostly_succeeds(world: ShopWorld) -> None:
    assert mean_score(world, Habits()) > 0.85


def test_a_forgotten_option_always_costs_success_but_not_the_score(world: ShopWorld) -> None:
    habits = Habits(forgets_option=True)
    assert mean_score(world, habits) == 0.0
    assert mean_score(world, habits, full_only=False) > 0.5


@pytest.mark.parametrize("habit", ["ignores_price", "vague"])
def test_a_bad_habit_costs_success(world: ShopWorld, habit: str) -> None:
    assert mean_score(world, Habits(**{habit: True})) < mean_score(world, Habits()) - 0.1


def test_who_skips_features_never_reads_them(world: ShopWorld) -> None:
    read = [sum(a == "click[features]" for a in visit(world, Habits(), n)[0]) for n in range(40)]
    skipped = [visit(world, Habits(skips_features=True), n)[0] for n in range(40)]
    assert sum(read) > 5
    assert not any("click[features]" in actions for actions in skipped)


def test_every_action_without_noise_is_offered(world: ShopWorld) -> None:
    for number in range(40):
        environment = world.make()
        environment.reset(world.tasks("train")[number])
        for action in visit(world, Habits(), number)[0]:
            assert environment.step(action).valid, action


def test_noise_leads_astray_and_the_same_random_to_the_same_place(world: ShopWorld) -> None:
    noisy = Habits(noise=0.5)
    assert visit(world, noisy, 3) == visit(world, noisy, 3)
    assert mean_score(world, noisy) < mean_score(world, Habits())


def test_a_persons_instruction_is_refused(world: ShopWorld) -> None:
    goal = {**world.catalogue.goals[0], "goal_options": ["red"]}
    with pytest.raises(ValueError, match="generated instructions only"):
        Shopper(world.catalogue, goal, Random(0))
