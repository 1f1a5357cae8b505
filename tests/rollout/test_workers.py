"""Worker processes: killed at any moment, timed, started again, and gone when they must be."""

import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from functools import partial
from typing import Any

import psutil
import pytest

from corridors import REQUESTS, TASKS, WORLD, same, walked, wholes, workers
from rewardswap.envs.corridor import CorridorWorld
from rewardswap.envs.faulty import Fault
from rewardswap.rollout.config import RolloutConfig
from rewardswap.rollout.environments import ListedWorld
from rewardswap.rollout.host import Broken
from rewardswap.rollout.worker import answer_of, broken_of, line_of
from rewardswap.rollout.workers import WorkerEnvironments
from strange_worlds import (
    Chatty,
    Forgetful,
    Parental,
    Splitting,
    WithoutTorch,
    ends_the_process,
    refuses,
)


@pytest.mark.parametrize("count", [1, 2, 8])
@pytest.mark.parametrize(("slots", "at_once"), [(None, 1), (5, None), (7, 3)])
def test_workers_slots_and_orders_change_no_bit(
    count: int, slots: int | None, at_once: int | None
) -> None:
    slow = [Fault("slow", share=0.05, seconds=0.02), Fault("raises", share=0.03)]
    expected = walked(faults=slow[1:])
    assert expected.failures
    with closing(workers(count, slow)) as environments:
        assert same(walked(environments, slots=slots, at_once=at_once), expected)
        assert len(environments.processes) == min(count, slots or count)


class Killing:
    """Environments whose worker is killed from outside before the n-th time that all step."""

    def __init__(self, inner: WorkerEnvironments, when: int) -> None:
        self.inner, self.left = inner, when

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def step(self, actions: Any) -> Any:
        self.left -= 1
        if self.left == 0:
            os.kill(self.inner.processes[0].pid, signal.SIGKILL)
        return self.inner.step(actions)


@pytest.mark.parametrize("when", [1, 4])
def test_a_worker_killed_from_outside_costs_nothing(when: int) -> None:
    with closing(workers(2)) as environments:
        played = walked(Killing(environments, when))  # type: ignore[arg-type]
    assert wholes(played) == wholes(walked())
    assert not played.failures
    assert played.counters["worker_restarts"] == 1
    assert played.counters["step_deadlines"] == 0
    assert played.counters["replayed_steps"] > 0


def test_a_world_that_is_not_deterministic_breaks_what_is_played_again() -> None:
    differs = Fault("differs", task=TASKS[0].id, turn=1)
    with closing(workers(1, [differs])) as environments:
        environments.reset({0: TASKS[0], 1: TASKS[1]})
        environments.step({0: "jump", 1: "jump"})
        os.kill(environments.processes[0].pid, signal.SIGKILL)
        found = environments.step({1: "jump"})
        assert found[1] == WORLD_AFTER_JUMP
        late = environments.step({0: "jump", 1: "jump"})
        assert isinstance(late[0], Broken)
        assert "the same actions were answered something else" in late[0].cause
        assert late[1] == WORLD_AFTER_JUMP
        assert environments.end()["worker_restarts"] == 1


def after_jump() -> Any:
    live = WORLD.make()
    live.reset(TASKS[1])
    return live.step("jump")


WORLD_AFTER_JUMP = after_jump()


def test_a_world_that_cannot_be_made_there_stops_the_run() -> None:
    with (
        closing(workers(1, recipe=refuses)) as environments,
        pytest.raises(ValueError, match=r"cannot be made .* ValueError: no games found; get them"),
    ):
        environments.reset({0: TASKS[0]})
    with (
        closing(workers(1, recipe=ends_the_process, restarts=2)) as environments,
        pytest.raises(ValueError, match=r"again 2 times in a row .* ended with exit status 9"),
    ):
        environments.reset({0: TASKS[0]})


def test_a_recipe_that_no_other_process_finds_is_refused() -> None:
    with pytest.raises(ValueError, match=r"cannot be sent to a worker process .* of a module"):
        workers(1, recipe=lambda: CorridorWorld())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"workers": -1}, "workers must be at least 0, got -1"),
        ({"workers": 1, "restarts": -1}, "restarts must be at least 0, got -1"),
        ({"workers": 1, "restart_seconds": -0.1}, "restart_seconds must be at least 0, got -0.1"),
        ({"workers": 1, "step_seconds": 0.0}, "step_seconds must be above 0, got 0.0"),
        ({"step_seconds": 5.0}, "step_seconds does nothing without worker processes"),
        ({"restarts": 5}, "restarts does nothing without worker processes"),
        ({"failure_limit": 1.5}, r"failure_limit must be in \[0, 1\], got 1.5"),
    ],
)
def test_settings_out_of_range_or_without_effect(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        RolloutConfig(**settings)


def test_a_pause_doubles_with_each_time_in_a_row() -> None:
    """The process dies in every reset: broken the second time, so 1, 2, 4, 8 pauses, no answer."""
    dies = [Fault("dies", turn=0)]
    with closing(workers(1, dies, restart_seconds=0.01, restarts=4)) as environments:
        found = environments.reset({0: TASKS[0], 1: TASKS[1]})
        assert all(isinstance(answer, Broken) for answer in found.values())
        assert environments.end()["worker_restarts"] == 4
        with pytest.raises(ValueError, match="started again 4 times in a row without an answer"):
            environments.reset({n: TASKS[n] for n in range(3)})


def test_restarts_with_an_answer_between_are_not_in_a_row() -> None:
    """Three episodes end their process twice each; resets that are asked again are answered."""
    with closing(workers(1, [Fault("dies", turn=1)], restarts=2)) as environments:
        environments.reset({n: TASKS[n] for n in range(4)})
        found = environments.step({n: "jump" for n in range(3)})
        assert all(isinstance(answer, Broken) for answer in found.values())
        assert environments.end()["worker_restarts"] == 6


def test_splits_that_are_listed_here_are_listed_there() -> None:
    """Official ALFWorld games are known to a world only when their split was listed."""
    world = ListedWorld(CorridorWorld())
    assert world.tasks("train") == CorridorWorld().tasks("train")
    assert world.remarks("held_out") == []
    world.tasks("train")
    assert world.listed == ["train"]
    environments = WorkerEnvironments(Forgetful, 1, splits=world.listed)
    with closing(environments):
        held_out = world.tasks("held_out")[0]  # listed behind the making of the workers
        found = environments.reset({0: TASKS[0], 1: held_out})
        assert not any(isinstance(answer, Broken) for answer in found.values())


def test_what_an_environment_prints_or_reads_is_not_the_channel(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with closing(workers(1, recipe=Chatty)) as environments:
        assert not isinstance(environments.reset({0: TASKS[0]})[0], Broken)
    assert "hello from the corridor" in capfd.readouterr().err


def test_workers_hold_no_torch() -> None:
    with closing(workers(1, recipe=WithoutTorch)) as environments:
        assert not isinstance(environments.reset({0: TASKS[0]})[0], Broken)


def lives(pid: int) -> bool:
    """Whether a process runs; one that has ended may wait for its parent to notice."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def gone(pids: list[int], seconds: float = 20.0) -> bool:
    """Whether all processes end by themselves within a while."""
    until = time.monotonic() + seconds
    while any(map(lives, pids)) and time.monotonic() < until:
        time.sleep(0.05)
    return not any(map(lives, pids))


def test_what_a_killed_worker_had_started_is_gone_too() -> None:
    with closing(workers(1, recipe=Parental, step_seconds=0.5)) as environments:
        begun = environments.reset({0: TASKS[0]})[0]
        assert not isinstance(begun, Broken)
        found = environments.step({0: "east"})[0]
        assert found == Broken("its worker process took longer than 0.5 s in a step")
        assert gone([int(begun.text)])


@pytest.mark.parametrize(
    ("how", "cause"),
    [
        ("kept", "its worker process ended with exit status 3 in a step"),
        ("signal", f"its worker process was ended by signal {signal.SIGRTMIN + 6} in a step"),
        ("writes", "its worker process wrote what was no answer in a step"),
    ],
)
def test_whatever_a_worker_leaves_behind_breaks_the_episode_alone(how: str, cause: str) -> None:
    """A copy of the process keeps its pipe, so that no end of it is read."""
    with closing(workers(1, recipe=partial(Splitting, how))) as environments:
        environments.reset({0: TASKS[0]})
        assert environments.step({0: "jump"}) == {0: Broken(cause)}
        assert environments.end()["worker_restarts"] == 2


def test_a_copy_of_a_worker_that_comes_back_is_not_heard() -> None:
    with closing(workers(1, recipe=partial(Splitting, "both"))) as environments:
        environments.reset({0: TASKS[0], 1: TASKS[1]})
        for _ in range(3):
            found = environments.step({0: "jump", 1: "jump"})
            assert found[1] == WORLD_AFTER_JUMP
        assert environments.end()["worker_restarts"] == 0


def test_an_answer_is_one_line_behind_the_number_of_what_was_asked() -> None:
    broken = Broken("it broke")
    line = line_of(broken, 7)
    assert broken_of(answer_of(line, 7)) == broken
    for strange in (line_of(broken, 8), line + line, line[2:], b"7", b"\n", b"7 []"):
        with pytest.raises(ValueError, match="no answer to request 7"):
            answer_of(strange, 7)


SCRIPT = """
import signal
from functools import partial
from rewardswap.envs.corridor import CorridorWorld
from rewardswap.envs.faulty import Fault, FaultyWorld
from rewardswap.rollout.workers import WorkerEnvironments

signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests may ignore it
world = CorridorWorld()
tasks = world.tasks("train")
recipe = partial(FaultyWorld, world, [Fault("hangs", task=tasks[1].id, turn=1)])
environments = WorkerEnvironments(recipe, 2)
environments.reset({0: tasks[0], 1: tasks[1]})
print(*(process.pid for process in environments.processes), flush=True)
HERE
"""


@pytest.mark.parametrize(
    ("ending", "send"),
    [
        ("environments.step({0: 'jump', 1: 'jump'})", signal.SIGKILL),
        ("environments.step({0: 'jump', 1: 'jump'})", signal.SIGINT),
        ("environments.step({0: 'jump', 1: 'jump'})", signal.SIGTERM),
        ("raise RuntimeError('the trainer broke')", None),
        ("", None),
    ],
)
def test_no_worker_outlives_the_trainer(ending: str, send: signal.Signals | None) -> None:
    """Also where one of them is in the middle of a step that never ends."""
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT.replace("HERE", ending)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as trainer:
        assert trainer.stdout is not None
        pids = [int(pid) for pid in trainer.stdout.readline().split()]
        assert len(pids) == 2
        if send is not None:
            time.sleep(0.3)  # into the step
            trainer.send_signal(send)
        trainer.wait(30)
    assert gone(pids)


def test_ending_in_the_middle_of_a_step_is_quick_and_the_next_play_is_whole() -> None:
    faults = [Fault("hangs", task=TASKS[0].id, turn=1, seed=1)]
    with closing(workers(2, faults)) as environments:
        environments.reset({0: TASKS[0], 1: TASKS[1]})
        previous = signal.signal(signal.SIGALRM, interrupted)
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with pytest.raises(KeyboardInterrupt):
            environments.step({0: "jump", 1: "jump"})
        signal.signal(signal.SIGALRM, previous)
        assert environments.end()["worker_restarts"] == 1
        played = walked(environments, requests=REQUESTS[2:])
    assert wholes(played) == wholes(walked(requests=REQUESTS[2:]))


def interrupted(number: int, frame: Any) -> None:
    raise KeyboardInterrupt


def held() -> tuple[int, int, int]:
    """Threads, open files and children of this process."""
    process = psutil.Process()
    return process.num_threads(), process.num_fds(), len(process.children(recursive=True))


def cycle(environments: WorkerEnvironments, times: int) -> None:
    for _ in range(times):
        environments.reset({0: TASKS[0], 1: TASKS[1]})
        environments.end()


def resident(environments: WorkerEnvironments) -> int:
    """Bytes of this process and its workers."""
    pids = [os.getpid(), *(process.pid for process in environments.processes)]
    return sum(psutil.Process(pid).memory_info().rss for pid in pids)


def open_and_close(times: int) -> None:
    for _ in range(times):
        with closing(workers(2)) as environments:
            environments.reset({0: TASKS[0], 1: TASKS[1]})


@pytest.mark.parametrize("cycles", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_reset_and_close_keep_everything_flat(cycles: int) -> None:
    with closing(workers(2)) as environments:
        cycle(environments, 20)
        before, bytes_before = held(), resident(environments)
        cycle(environments, cycles)
        assert held() == before
        assert resident(environments) - bytes_before < 4 * 2**20


@pytest.mark.parametrize("cycles", [3, pytest.param(100, marks=pytest.mark.slow)])
def test_opening_and_closing_workers_keeps_everything_flat(cycles: int) -> None:
    open_and_close(1)
    before, bytes_before = held(), psutil.Process().memory_info().rss
    open_and_close(cycles)
    assert held() == before
    assert psutil.Process().memory_info().rss - bytes_before < 4 * 2**20


def test_forgotten_workers_end() -> None:
    environments: Any = workers(1)
    environments.reset({0: TASKS[0]})
    pids = [process.pid for process in environments.processes]
    del environments
    assert gone(pids)
