"""Environments in worker processes: they step side by side, and none can stop the run."""

import base64
import json
import pickle
import time
import weakref
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import wait
from typing import Any

from rewardswap.checks import at_least, positive
from rewardswap.envs.base import Observation, Step, World
from rewardswap.rollout.host import Answer, Broken
from rewardswap.rollout.worker import observation_of, step_of
from rewardswap.rollout.worker_process import Worker, WorkerProcess, end_all
from rewardswap.rollout.worker_queue import CLOSE_SECONDS, Patience, WorkerQueue
from rewardswap.task import Task

LOOK_SECONDS = 1.0
"""Longest time in which no answer comes before it is looked whether the processes live."""


class WorkerEnvironments:
    """Environments of one world in `workers` processes, each with a world of its own.

    `recipe` makes the world there: it is pickled, so it must be importable from a module.
    `splits` names the splits that the world lists there before it plays; more may be added to it
    later. `start` starts a process, here or on another machine. An episode belongs to one worker;
    one that breaks a deadline or ends its process is broken, and its neighbours are played again in
    the next process. Raises ValueError for a recipe that cannot be pickled and for numbers out of
    range.
    """

    def __init__(
        self,
        recipe: Callable[[], World],
        workers: int,
        *,
        splits: Sequence[str] = (),
        step_seconds: float | None = None,
        restart_seconds: float = 0.5,
        restarts: int = 32,
        start: Callable[[bytes], Worker] = WorkerProcess,
    ) -> None:
        at_least(1, workers=workers)
        at_least(0, restart_seconds=restart_seconds, restarts=restarts)
        if step_seconds is not None:
            positive(step_seconds=step_seconds)
        patience = Patience(step_seconds, restart_seconds, restarts)
        line = _first_line(recipe)
        self._splits = splits
        self._workers = [WorkerQueue(line, patience, start) for _ in range(workers)]
        self._of: dict[int, WorkerQueue] = {}
        self._finish = weakref.finalize(self, _end, self._workers)

    @property
    def processes(self) -> list[Worker]:
        """The processes that run now."""
        return [worker.process for worker in self._workers if worker.process is not None]

    def reset(self, tasks: Mapping[int, Task]) -> dict[int, Observation | Broken]:
        """Begin episodes, each in the worker that has fewest."""
        for episode, task in tasks.items():
            worker = self._of[episode] = min(self._workers, key=len)
            worker.reset(episode, (task.id, task.family, task.origin), list(self._splits))
        return {episode: _read(line, observation_of) for episode, line in self._hear(tasks)}

    def step(self, actions: Mapping[int, str]) -> dict[int, Step | Broken]:
        """Take the actions, the workers side by side."""
        for episode, action in actions.items():
            self._of[episode].step(episode, action)
        return {episode: _read(line, step_of) for episode, line in self._hear(actions)}

    def release(self, episode: int) -> None:
        """Its environment may play another episode."""
        self._of.pop(episode).release(episode)

    def end(self) -> Counter[str]:
        """Close every environment; a worker that is busy is ended. The others live on."""
        self._of = {}
        for worker in self._workers:
            worker.end()
        self._work()
        found: Counter[str] = Counter()
        for worker in self._workers:
            found.update(worker.counters)
            worker.counters.clear()
        return found

    def close(self) -> None:
        """End the processes; done by itself where this is forgotten, and at the program's end."""
        self._finish()

    def _hear(self, episodes: Mapping[int, Any]) -> list[tuple[int, bytes | Broken]]:
        self._work()
        found = [(episode, self._of[episode].found.pop(episode)) for episode in episodes]
        for episode, answer in found:
            if isinstance(answer, Broken):
                del self._of[episode]
        return found

    def _work(self) -> None:
        """Let the workers work until nothing is asked for."""
        while busy := [worker for worker in self._workers if worker.busy]:
            for worker in busy:
                worker.advance(time.monotonic())
            wakes = [when for worker in busy if (when := worker.wakes) is not None]
            seconds = max(0.0, min([LOOK_SECONDS, *(when - time.monotonic() for when in wakes)]))
            listened: dict[Any, WorkerQueue] = {
                worker.process.fileno(): worker for worker in busy if worker.process
            }
            heard = wait(list(listened), seconds)
            for number in heard:
                listened[number].hear()
            for worker in busy if not heard else ():
                worker.look()


def _first_line(recipe: Callable[[], World]) -> bytes:
    try:
        pickled = pickle.dumps(recipe)
    except Exception as error:  # pickle raises whatever it meets
        raise ValueError(
            f"the recipe {recipe!r} cannot be sent to a worker process ({error}); take a class or "
            "a function of a module, with functools.partial for its arguments"
        ) from error
    return json.dumps(base64.b64encode(pickled).decode()).encode() + b"\n"


def _read(line: bytes | Broken, read: Callable[[bytes], Answer]) -> Answer | Broken:
    return line if isinstance(line, Broken) else read(line)


def _end(workers: Sequence[WorkerQueue]) -> None:
    """End all processes, those that are busy at once."""
    processes = []
    for worker in workers:
        if worker.busy:
            worker.kill()
        elif worker.process is not None:
            processes.append(worker.process)
            worker.process = None
    end_all(processes, CLOSE_SECONDS)
