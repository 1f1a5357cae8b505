"""Seconds of an update on 1, 2, 4 processes joined by gloo, when each has the same work.

    python benchmarks/weak_scaling.py [--ranks 1 2 4] [--tasks 8] [--updates 4] [--repeats 3]

`demo-grpo`, the shipped agent in generated rooms, with `--tasks` groups of 8 episodes for each
process, replicated and sharded, started by torchrun. Everything is learned from, whatever came of
it, and the learning rate is next to nothing, so that updates are alike. The ways follow one
another, `--repeats` times; the first update of each is left out. Figures are means over the
processes, and of these the median over all updates.

Playing and learning contain waiting: the seconds inside calls to the other processes, until the
last one comes and what they send. What FSDP2 itself exchanges, of a sharded model, is not counted.
Processor: what a process computes; that says what more of them cost where they share cores.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory
from typing import TypeVar

from rich.console import Console
from torch import Tensor

from rewardswap.collector import Phase
from rewardswap.configuration import Run
from rewardswap.distributed.process_group import joined
from rewardswap.env_config.alfworld import Alfworld
from rewardswap.loops.settings import Batch
from rewardswap.methods.grpo import GRPO
from rewardswap.models.learner import Metrics
from rewardswap.ranks import Ranks
from rewardswap.recipes import demo_grpo
from rewardswap.screen import Screen
from rewardswap.session import Training

T = TypeVar("T")
Figures = dict[str, float]

WAYS, ALONE = ("replicated", "sharded"), ("alone",)
"""How several processes hold the weights, and how one does."""

FIGURES = ("seconds", "playing", "learning", "waiting", "processor", "tokens")
"""Of one update: five in seconds, and the tokens that were played and learned for each process."""


class Counted:
    """Ranks, and the seconds that calls to them take."""

    def __init__(self, ranks: Ranks) -> None:
        self.rank, self.size = ranks.rank, ranks.size
        self.seconds = 0.0
        self._ranks = ranks

    def gather(self, value: T) -> list[T]:
        """As the ranks do."""
        return self._count(lambda: self._ranks.gather(value))

    def first(self, value: T) -> T:
        """As the ranks do."""
        return self._count(lambda: self._ranks.first(value))

    def add(self, tensor: Tensor) -> None:
        """As the ranks do."""
        self._count(lambda: self._ranks.add(tensor))

    def _count(self, call: Callable[[], T]) -> T:
        begun = time.perf_counter()
        found = call()
        self.seconds += time.perf_counter() - begun
        return found


class Clock(Screen):
    """Shows nothing; reads the clocks behind every update."""

    def __init__(self, ranks: Counted) -> None:
        super().__init__(Console(quiet=True))
        self.updates: list[Figures] = []
        self._ranks = ranks
        self._before: Figures = {}

    def updated(self, metrics: Metrics, phase: Phase) -> None:
        """Of every update but the first: what was added since the one before."""
        now = {
            "seconds": time.perf_counter(),
            "waiting": self._ranks.seconds,
            "processor": time.process_time(),
            "tokens": (metrics["generated_tokens"] + metrics["trained_tokens"]) / self._ranks.size,
        }
        if self._before:
            added = {name: value - self._before[name] for name, value in now.items()}
            added |= {"playing": metrics["rollout_seconds"], "learning": metrics["update_seconds"]}
            self.updates.append(added)
        self._before = now


def run_of(tasks: int, updates: int, output: Path, *, sharded: bool) -> Run:
    """A run of `updates` updates on `tasks` groups of 8 episodes."""
    run = demo_grpo()
    return replace(
        run,
        output=output,
        budget=updates,
        env=Alfworld(generated_games=max(200, tasks), evaluation_tasks=1, turn_limit=12),
        batch=Batch(tasks=tasks, group_size=8),
        # with a term beside the surrogate no row is passed over
        method=GRPO(average="trajectory", entropy_coefficient=1e-6),
        policy=replace(run.policy, learning_rate=1e-9, sharded=sharded),
    )


def be_a_rank(folder: Path, tasks: int, updates: int) -> None:
    """Train in each way as one of the processes; write what the updates took."""
    found = {}
    with joined() as ranks:
        for way in WAYS if ranks.size > 1 else ALONE:
            counted = Counted(ranks)
            clock = Clock(counted)
            run = run_of(tasks * ranks.size, updates, folder / way, sharded=way == "sharded")
            Training(run, ranks=counted).rehearse(clock)
            found[way] = clock.updates
        (folder / f"{ranks.rank}.json").write_text(json.dumps(found))


def measured(ranks: int, tasks: int, updates: int) -> dict[str, list[Figures]]:
    """What the updates of one start took in each way, as means over its processes."""
    with TemporaryDirectory() as name:
        words = ["--as-rank-of", name, str(tasks), str(updates)]
        start = ["torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
        subprocess.run(
            [sys.executable, "-m", *start, __file__, *words],
            check=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        each = [json.loads((Path(name) / f"{rank}.json").read_text()) for rank in range(ranks)]
    return {
        way: [
            {figure: fmean(one[figure] for one in same) for figure in FIGURES}
            for same in zip(*(one[way] for one in each), strict=True)
        ]
        for way in each[0]
    }


def main() -> None:
    """Measure and print."""
    if sys.argv[1:2] == ["--as-rank-of"]:
        folder, tasks, updates = sys.argv[2:]
        be_a_rank(Path(folder), int(tasks), int(updates))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--tasks", type=int, default=8, help="groups of each process")
    parser.add_argument("--updates", type=int, default=4, help="of a start, the first included")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    found: dict[tuple[int, str], list[Figures]] = {}
    for _ in range(given.repeats):
        for ranks in sorted({1, *given.ranks}):
            for way, updates in measured(ranks, given.tasks, given.updates).items():
                found.setdefault((ranks, way), []).extend(updates)
    alone = found[1, ALONE[0]]
    print(
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end; {given.tasks} groups "
        f"of 8 episodes a process, {len(alone)} updates of each\n\n"
        "| processes | way | seconds an update | to one | playing | learning | waiting in both "
        "| processor | to one | tokens a process |\n|" + "---|" * 10
    )
    middle = {
        way: {figure: median(one[figure] for one in updates) for figure in FIGURES}
        for way, updates in found.items()
    }
    first = middle[1, ALONE[0]]
    for (ranks, way), one in middle.items():
        ratios = {name: f"{one[name] / first[name]:.2f} x" for name in ("seconds", "processor")}
        print(
            f"| {ranks} | {way} | {one['seconds']:.2f} | {ratios['seconds']} | "
            f"{one['playing']:.2f} | {one['learning']:.2f} | {one['waiting']:.2f} | "
            f"{one['processor']:.2f} | {ratios['processor']} | {one['tokens']:,.0f} |"
        )


if __name__ == "__main__":
    main()
