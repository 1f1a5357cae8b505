"""What environments do for a rollout, in this process and in workers."""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from corridors import REQUESTS, TASKS, WORLD, same, walked, workers
from rewardswap.envs.base import Observation, Step
from rewardswap.envs.corridor import CorridorWorld
from rewardswap.envs.faulty import Fault, FaultyWorld
from rewardswap.rollout.environments import (
    ENVIRONMENT_COUNTERS,
    Environments,
    LocalEnvironments,
    Places,
)
from rewardswap.rollout.host import Broken

Make = Callable[[list[Fault]], Environments]


@pytest.fixture(params=["local", "one worker", "three workers"])
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    made: list[Environments] = []

    def maker(faults: list[Fault]) -> Environments:
        if request.param == "local":
            made.append(LocalEnvironments(FaultyWorld(WORLD, faults)))
        else:
            made.append(workers(1 if request.param == "one worker" else 3, faults))
        return made[-1]

    yield maker
    for environments in made:
        environments.close()


def test_it_answers_every_episode_in_the_order_of_asking(make: Make) -> None:
    environments = make([])
    assert isinstance(environments, Environments)
    begun = environments.reset({n: TASKS[n] for n in (5, 3, 4)})
    live = WORLD.make()
    assert begun == {n: live.reset(TASKS[n]) for n in (5, 3, 4)}
    assert list(begun) == [5, 3, 4]
    stepped = environments.step({4: "east", 5: "west"})
    assert list(stepped) == [4, 5]
    for n, action in ((4, "east"), (5, "west")):
        live.reset(TASKS[n])
        assert stepped[n] == live.step(action)
    environments.end()


def test_an_environment_plays_again_when_its_episode_is_over(make: Make) -> None:
    environments = make([])
    first = environments.reset({0: TASKS[0], 1: TASKS[1]})
    environments.step({0: "east"})
    environments.release(0)
    again = environments.reset({2: TASKS[0]})
    assert again[2] == first[0]
    assert isinstance(environments.step({1: "jump"})[1], Step)
    environments.end()


def test_a_broken_episode_leaves_the_others_alone(make: Make) -> None:
    environments = make([Fault("raises", task=TASKS[0].id, turn=1)])
    environments.reset({0: TASKS[0], 1: TASKS[1]})
    found = environments.step({0: "jump", 1: "jump"})
    assert found[0] == Broken("RuntimeError: a fault was put in")
    assert isinstance(found[1], Step)
    assert isinstance(environments.step({1: "jump"})[1], Step)
    environments.end()


def test_closing_that_raises_is_counted_and_nothing_else(make: Make) -> None:
    environments = make([Fault("raises in close")])
    for _ in range(2):
        assert isinstance(environments.reset({0: TASKS[0]})[0], Observation)
        counted = environments.end()
        assert {name: counted[name] for name in ENVIRONMENT_COUNTERS} == {
            name: int(name == "failed_closes") for name in ENVIRONMENT_COUNTERS
        }


def test_ending_twice_and_ending_nothing_is_no_error(make: Make) -> None:
    environments = make([])
    for _ in range(2):
        assert set(environments.end().values()) <= {0}
    environments.close()


@pytest.mark.parametrize("slots", [None, 3])
def test_episodes_are_what_they_are_anywhere(make: Make, slots: int | None) -> None:
    faults = [Fault("raises", share=0.1), Fault("nan", share=0.05), Fault("slow", share=0.02)]
    expected: Any = walked(faults=faults)
    assert 5 < len(expected.failures) < len(REQUESTS) - 5
    environments = make(faults)
    with closing(environments):
        assert same(walked(environments, slots=slots, at_once=2), expected)


def test_numbers_are_taken_again_unless_their_environment_broke() -> None:
    places = Places()
    assert [places.take(episode) for episode in (7, 9)] == [0, 1]
    places.release(7)
    assert (places.take(3), places[3], len(places)) == (0, 0, 2)
    places.drop(3)
    assert (places.take(4), len(places)) == (2, 2)


class Counted(CorridorWorld):
    """How many environments were made."""

    made = 0

    def make(self) -> Any:
        self.made += 1
        return super().make()


def test_as_many_environments_are_made_as_episodes_live_at_once() -> None:
    world = Counted()
    assert len(walked(LocalEnvironments(world), slots=2).trajectories) == len(REQUESTS)
    assert world.made == 2
