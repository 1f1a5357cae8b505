"""Environment workers on other nodes: they change no number, whatever becomes of them."""

from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from corridors import TASKS, WORLD, same, walked, wholes
from rewardswap.envs.faulty import Fault, FaultyWorld
from rewardswap.rollout.host import Broken
from rewardswap.rollout.workers import WorkerEnvironments
from strange_worlds import refuses

pytest.importorskip("ray", reason="ray is not installed; run `make test-ray`")

from rewardswap.cluster.workers import FarWorker

if TYPE_CHECKING:
    from .conftest import TwoNodes

WORKER = "rewardswap.rollout.worker import serve"
ACTOR = "ray::FarProcess"


def far(count: int, *faults: Fault, recipe: Any = None, **settings: Any) -> WorkerEnvironments:
    recipe = recipe or partial(FaultyWorld, WORLD, faults)
    return WorkerEnvironments(
        recipe, count, start=FarWorker, **{"restart_seconds": 0.0, **settings}
    )


class Disturbing:
    """Environments to which something happens before the n-th time that all step."""

    def __init__(self, inner: WorkerEnvironments, when: int, what: Callable[[], Any]) -> None:
        self.inner, self.left, self.what = inner, when, what

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def step(self, actions: Any) -> Any:
        self.left -= 1
        if self.left == 0:
            self.what()
        return self.inner.step(actions)


def test_far_workers_change_no_bit_and_are_spread(connected: Any, nodes: "TwoNodes") -> None:
    raises = Fault("raises", share=0.03)
    with closing(far(4, raises)) as environments:
        spread: list[int] = []

        def look() -> None:
            spread.extend(len(nodes.processes(WORKER, node)) for node in (0, 1))

        assert same(walked(Disturbing(environments, 2, look)), walked(faults=[raises]))  # type: ignore[arg-type]
    assert sum(spread) == 4 and min(spread) > 0


@pytest.mark.parametrize("word", [WORKER, ACTOR])
def test_a_far_worker_killed_in_a_rollout_costs_nothing(
    connected: Any, nodes: "TwoNodes", word: str
) -> None:
    with closing(far(2)) as environments:
        played = walked(Disturbing(environments, 3, lambda: nodes.processes(word)[0].kill()))  # type: ignore[arg-type]
    assert wholes(played) == wholes(walked()) and not played.failures
    assert played.counters["worker_restarts"] == 1
    assert played.counters["replayed_steps"] > 0
    same_steps = ("environment_steps", "generated_tokens")
    assert [played.counters[n] for n in same_steps] == [walked().counters[n] for n in same_steps]


def test_a_lost_node_costs_nothing(connected: Any, nodes: "TwoNodes") -> None:
    with closing(far(2)) as environments:
        played = walked(Disturbing(environments, 3, nodes.lose_second))  # type: ignore[arg-type]
    assert wholes(played) == wholes(walked()) and not played.failures
    assert played.counters["worker_restarts"] >= 1
    assert played.counters["replayed_steps"] > 0


def test_a_far_worker_that_hangs_is_killed_at_its_deadline(
    connected: Any, nodes: "TwoNodes"
) -> None:
    hangs = Fault("hangs", task=TASKS[0].id, turn=1)
    with closing(far(1, hangs, step_seconds=2.0)) as environments:
        environments.reset({0: TASKS[0], 1: TASKS[1]})
        found = environments.step({0: "jump", 1: "jump"})
        assert found[0] == Broken("its worker process took longer than 2 s in a step")
        assert not isinstance(found[1], Broken)
        assert environments.end()["step_deadlines"] == 1


def test_what_ends_its_process_breaks_its_own_episode(connected: Any) -> None:
    with closing(far(1, Fault("dies", task=TASKS[0].id, turn=1))) as environments:
        environments.reset({0: TASKS[0], 1: TASKS[1]})
        found = environments.step({0: "jump", 1: "jump"})
        assert found[0] == Broken("its worker process ended with exit status 3 in a step")
        assert not isinstance(found[1], Broken)


def test_a_world_that_cannot_be_made_there_says_so(connected: Any) -> None:
    with (
        closing(far(1, recipe=refuses)) as environments,
        pytest.raises(ValueError, match="no games found"),
    ):
        environments.reset({0: TASKS[0]})


def test_no_process_is_left(connected: Any, nodes: "TwoNodes") -> None:
    with closing(far(2)) as environments:
        environments.reset({0: TASKS[0], 1: TASKS[1]})
        left = nodes.processes(WORKER)
        assert len(left) >= 2
    for process in left:
        process.wait(20)
