"""Every fault that an environment can have costs its own episodes, and is told by its cause."""

from collections.abc import Sequence
from contextlib import closing

import pytest

from corridors import REQUESTS, TASKS, walked, whole, wholes, workers
from rewardswap.envs.faulty import Fault, FaultKind
from rewardswap.rollout.host import MOST_OF_A_CAUSE, cause_of
from rewardswap.types import EpisodeFailure

CAUSES: dict[FaultKind, str] = {
    "raises": "RuntimeError: a fault was put in",
    "raises strangely": "StrangeError: (its text raised RuntimeError)",
    "exits": "SystemExit: 3",
    "floods": "ValueError: text has 10000000 characters, at most 1000000 are taken",
    "no character": r"ValueError: text has '\ud800' at 13, which is no character",
    "nothing": "due, got None",
    "bytes": "due, got b'no observation'",
    "tuple": "due, got ('text', 0.0)",
    "number for text": "ValueError: text must be a text, got 7",
    "nan": "must be a number in [0, 1], got nan",
    "infinite": "must be a number in [0, 1], got inf",
    "too high": "must be a number in [0, 1], got 2.0",
}
"""Kind of fault -> what the cause must hold."""
PROCESS_CAUSES: dict[FaultKind, str] = {
    "interrupts": "KeyboardInterrupt: ",
    "hangs": "its worker process took longer than 1 s in a ",
    "dies": "its worker process ended with exit status 3 in a ",
    "is killed": "its worker process was ended by SIGKILL in a ",
}
"""Faults that only worker processes survive."""


def faults_of(kinds: Sequence[FaultKind], turn: int) -> list[Fault]:
    """A task for each kind."""
    return [Fault(kind, task=TASKS[n].id, turn=turn) for n, kind in enumerate(kinds)]


def check(failures: list[EpisodeFailure], causes: dict[FaultKind, str], turn: int) -> None:
    """Both episodes of each kind's task failed, with the kind's cause."""
    found = [(failure.task, failure.index) for failure in failures]
    assert found == [(task, n) for task in TASKS[: len(causes)] for n in range(2)]
    for number, failure in enumerate(failures):
        kind = list(causes)[number // 2]
        assert failure.owner == "environment"
        assert causes[kind] in failure.cause, kind
        if kind in PROCESS_CAUSES and kind != "interrupts":
            assert failure.cause.endswith("reset" if turn == 0 else "step")


@pytest.mark.parametrize("turn", [0, 1])
def test_every_fault_costs_its_own_episodes_only(turn: int) -> None:
    played = walked(faults=faults_of(list(CAUSES), turn))
    check(played.failures, CAUSES, turn)
    assert played.counters["failed_episodes"] == 2 * len(CAUSES)
    assert wholes(played) == wholes(walked())[2 * len(CAUSES) :]


@pytest.mark.parametrize("turn", [0, 1])
def test_in_workers_no_fault_costs_a_sibling(turn: int) -> None:
    causes = {**PROCESS_CAUSES, **CAUSES}
    faults = faults_of(list(causes), turn)
    with closing(workers(2, faults, step_seconds=1.0)) as environments:
        played = walked(environments)
    check(played.failures, causes, turn)
    assert wholes(played) == wholes(walked())[2 * len(causes) :]
    # two episodes each: one that hangs costs a process, one that ends its process two
    assert played.counters["step_deadlines"] == 2
    assert played.counters["worker_restarts"] == 2 * (1 + 2 + 2)
    assert played.counters["failed_episodes"] == 2 * len(causes)


def test_an_episode_that_never_ends_runs_into_the_turn_limit() -> None:
    ended = [t for t in walked().trajectories if t.stop == "done"]
    played = walked(faults=[Fault("never ends")])
    assert ended and not played.failures
    assert {(t.stop, t.success, t.outcome, len(t.turns)) for t in played.trajectories} == {
        ("turn_limit", False, 0.0, 6)
    }


def test_siblings_of_a_task_live_where_one_of_them_breaks() -> None:
    fault = Fault("raises", share=0.3)
    played = walked(faults=[fault])
    broken = {(failure.task, failure.index) for failure in played.failures}
    assert 0 < len(broken) < len(REQUESTS)
    kept = [t for t in walked().trajectories if (t.task, t.index) not in broken]
    assert wholes(played) == [whole(t) for t in kept]


def test_an_interrupt_in_this_process_is_the_users() -> None:
    with pytest.raises(KeyboardInterrupt):
        walked(faults=[Fault("interrupts", task=TASKS[3].id, turn=1)])


def test_a_cause_is_short_and_can_be_written() -> None:
    assert cause_of(ValueError("x" * 10_000)) == f"ValueError: {'x' * 488}..."
    assert MOST_OF_A_CAUSE == 500
    assert cause_of(OSError("half \ud800")) == r"OSError: half \ud800"


class HopelessError(Exception):
    def __str__(self) -> str:
        raise SystemExit(5)


def test_an_exception_may_end_the_program_in_telling_what_it_is() -> None:
    assert cause_of(HopelessError()) == "HopelessError: (its text raised SystemExit)"
    with pytest.raises(SystemExit):
        cause_of(HopelessError(), passed=(SystemExit,))
