"""Seconds of an update when a batch is played while the policy learns, against one after the other.

    python benchmarks/one_step_off.py [--tasks 8] [--updates 5] [--repeats 3] [--workers 0]

`demo-grpo`, the shipped agent in generated rooms, in one process: rollouts are a second thread over
a copy of the weights, so a second core can be used where Python's lock leaves it. Everything is
learned from, whatever came of it, and the learning rate is next to nothing, so that updates are
alike. Both ways follow one another, `--repeats` times; the first update of each is left out, and
so is the last, behind which nothing is played. Medians over all others.
"""

import argparse
import os
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from rich.console import Console

from rewardswap.collector import Phase
from rewardswap.configuration import Run
from rewardswap.env_config.alfworld import Alfworld
from rewardswap.loops.settings import Batch
from rewardswap.methods.grpo import GRPO
from rewardswap.models.learner import Metrics
from rewardswap.recipes import demo_grpo
from rewardswap.rollout.config import RolloutConfig
from rewardswap.screen import Screen
from rewardswap.session import Training

WAYS = {"one after the other": False, "one step off": True}


class Clock(Screen):
    """Shows nothing; (seconds, of them playing or waiting for it, learning) of every update."""

    def __init__(self) -> None:
        super().__init__(Console(quiet=True))
        self.updates: list[tuple[float, float, float]] = []
        self._before: float | None = None

    def updated(self, metrics: Metrics, phase: Phase) -> None:
        """Read the clock behind every update but the first."""
        now = time.perf_counter()
        if self._before is not None:
            spent = (now - self._before, metrics["rollout_seconds"], metrics["update_seconds"])
            self.updates.append(spent)
        self._before = now


def run_of(given: argparse.Namespace, output: Path, *, one_step_off: bool) -> Run:
    """A run of so many updates."""
    run = demo_grpo()
    return replace(
        run,
        output=output,
        budget=given.updates,
        env=Alfworld(generated_games=200, evaluation_tasks=1, turn_limit=12),
        batch=Batch(tasks=given.tasks, group_size=8),
        # with a term beside the surrogate no row is passed over
        method=GRPO(average="trajectory", entropy_coefficient=1e-6),
        policy=replace(run.policy, learning_rate=1e-9),
        rollout=RolloutConfig(workers=given.workers, one_step_off=one_step_off),
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=8, help="groups of 8 episodes of an update")
    parser.add_argument("--updates", type=int, default=5, help="of a start; the ends do not count")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--workers", type=int, default=0, help="processes of environments")
    given = parser.parse_args()
    if given.updates < 3:
        parser.error("--updates must be at least 3: the first and the last do not count")
    found: dict[str, list[tuple[float, float, float]]] = {way: [] for way in WAYS}
    for _ in range(given.repeats):
        for way, one_step_off in WAYS.items():
            clock = Clock()
            with TemporaryDirectory() as folder:
                run = run_of(given, Path(folder) / "run", one_step_off=one_step_off)
                Training(run).rehearse(clock)
            found[way] += clock.updates[:-1]
    middle = {
        way: [median(part) for part in zip(*spent, strict=True)] for way, spent in found.items()
    }
    first = middle["one after the other"][0]
    print(
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end; {given.tasks} groups "
        f"of 8 episodes, {len(found['one step off'])} updates of each way\n\n"
        "| way | seconds an update | speed | playing, or waiting for it | learning |\n"
        "|---|---|---|---|---|"
    )
    for way, (seconds, playing, learning) in middle.items():
        print(
            f"| {way} | {seconds:.2f} | {first / seconds:.2f} x | {playing:.2f} | {learning:.2f} |"
        )


if __name__ == "__main__":
    main()
