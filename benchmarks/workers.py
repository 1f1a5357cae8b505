"""Seconds of 64 episodes whose every step costs 2 ms of Python: in this process, and in workers.

    python benchmarks/workers.py [--workers 2]

The actions are scripted, so nearly all of the time is the environments'. The two ways are measured
in turn, three times each; the workers are started before. Prints the medians and their ratio.
"""

import argparse
import time
from contextlib import closing
from statistics import median

from rewardswap.envs.base import Environment, Step
from rewardswap.envs.corridor import CorridorEnvironment, CorridorWorld
from rewardswap.rollout.environments import Environments, LocalEnvironments
from rewardswap.rollout.workers import WorkerEnvironments

EPISODES, TURNS, TIMES = 64, 10, 3
STEP_SECONDS = 0.002


class Busy(CorridorEnvironment):
    """A walk whose steps keep the processor busy."""

    def step(self, action: str) -> Step:
        """Walk, and count for a while: by the processor's time, whoever else is at work."""
        until = time.thread_time() + STEP_SECONDS
        while time.thread_time() < until:
            pass
        return super().step(action)


class BusyWorld(CorridorWorld):
    """A corridor of busy walks."""

    def make(self) -> Environment:
        """A busy walk."""
        return Busy(self._games)


def seconds(environments: Environments) -> float:
    """Of all episodes."""
    tasks = BusyWorld().tasks("train")
    environments.reset({n: tasks[n % len(tasks)] for n in range(EPISODES)})
    begun = time.perf_counter()
    for _ in range(TURNS):
        environments.step({n: "stay" for n in range(EPISODES)})
    taken = time.perf_counter() - begun
    environments.end()
    return taken


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    count = parser.parse_args().workers
    local = LocalEnvironments(BusyWorld())
    # a module of its own name, so that the workers find it
    from workers import BusyWorld as Recipe

    with closing(WorkerEnvironments(Recipe, count)) as away:
        seconds(away)
        pairs = [(seconds(local), seconds(away)) for _ in range(TIMES)]
    here, there = median(one for one, _ in pairs), median(other for _, other in pairs)
    print(f"{EPISODES} episodes of {TURNS} steps of {1000 * STEP_SECONDS:g} ms, median of {TIMES}")
    print(f"in this process {here:.2f} s, in {count} workers {there:.2f} s: {here / there:.2f} x")


if __name__ == "__main__":
    main()
