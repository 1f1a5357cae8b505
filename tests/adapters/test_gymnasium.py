"""A registered environment of Gymnasium with text spaces."""

import pickle
from importlib.util import find_spec
from typing import Any

import pytest

from adapters.strange_environments import Count
from rewardswap.adapters.gymnasium import GymnasiumMaker
from rewardswap.adapters.seeded import SeededWorld
from rewardswap.inspection.check import check_environment

needs_it = pytest.mark.skipif(find_spec("gymnasium") is None, reason="gymnasium is not installed")


@pytest.fixture
def registered() -> str:
    import gymnasium
    from gymnasium.spaces import Text

    class Registered(Count, gymnasium.Env[str, str]):
        observation_space = Text(10, charset="0123456789 of")
        action_space = Text(5)

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            return super().reset(seed=seed or 0), {}

    id = "rewardswap/Count-v0"
    if id not in gymnasium.registry:
        gymnasium.register(id, Registered, max_episode_steps=4)
    return id


@needs_it
def test_an_environment_of_the_registry_is_a_world(registered: str) -> None:
    world = SeededWorld(GymnasiumMaker(registered), train_tasks=5)
    assert world.name == registered
    live = world.make()
    start = live.reset(world.tasks("train")[0])
    assert " of " in start.text
    assert not live.step("sixsix").valid  # the space holds five characters
    ended = [live.step("up").terminated for _ in range(4)]
    assert ended == [False, False, False, True]  # Gymnasium's own limit
    live.close()
    assert check_environment(GymnasiumMaker(registered), actions=["up", "stop"]).faults == ()


@needs_it
def test_other_spaces_are_refused() -> None:
    with pytest.raises(ValueError, match=r"the observation_space of CartPole-v1 is Box, not Text"):
        SeededWorld(GymnasiumMaker("CartPole-v1"))


@pytest.mark.skipif(find_spec("gymnasium") is not None, reason="gymnasium is installed")
def test_without_the_package_it_says_what_to_install() -> None:
    with pytest.raises(ValueError, match=r"Guess-v0 needs gymnasium; pip install 'rewardswap\[gym"):
        SeededWorld(GymnasiumMaker("Guess-v0"))


def test_it_can_be_sent_to_a_worker_process() -> None:
    maker = GymnasiumMaker("Guess-v0", {"size": 3})
    assert pickle.loads(pickle.dumps(maker)) == maker
