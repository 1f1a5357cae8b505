"""One run as a process of its own, and how far it is."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rewardswap.configuration import Run
from rewardswap.experiments.experiment import Job
from rewardswap.experiments.places import Places
from rewardswap.options import one_line

PATIENCE = 10.0
"""Seconds that a process has to end after it was told to."""
TAIL = 2**16
"""Most bytes at the end of a growing file that are looked at."""
RECENT = 5
"""Agent updates that the success so far is the mean of."""

Command = Callable[[Path, Path], list[str]]
"""The words that train a configuration's file into a run folder."""


def training(config: Path, folder: Path) -> list[str]:
    """`rewardswap train` of this very Python; a folder that is there goes on."""
    run = [str(config), "--output"] if not folder.exists() else ["--resume"]
    return [sys.executable, "-m", "rewardswap", "train", *run, str(folder)]


@dataclass
class Process:
    """A run that is going on."""

    job: Job
    child: subprocess.Popen[bytes]
    started: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """Seconds since it was started."""
        return time.monotonic() - self.started

    def end(self) -> None:
        """End it, by force if it does not within some seconds."""
        self.child.terminate()
        try:
            self.child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()


def start(job: Job, places: Places, command: Command, locks: Sequence[int]) -> Process:
    """Start a run that logs to its file and holds the runner's locks as long as it lives.

    Its environment is this process's, with one thread pool as large as the run says.
    """
    threads = {"OMP_NUM_THREADS": str(job.arm.run.threads), "PYTHONUNBUFFERED": "1"}
    with places.log(job).open("ab") as log:
        child = subprocess.Popen(
            command(places.config(job), places.folder(job)),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **threads},
            pass_fds=tuple(locks),
        )
    return Process(job, child)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Signals that stop a program come afterwards: a run that is being started is not lost.

    Only the main thread gets them, so nothing is done in others.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, lambda number, _: came.append(number)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
        for caught in came:
            signal.raise_signal(caught)


def last_line(path: Path) -> str:
    """The last line of a log that says something."""
    lines = [line.strip() for line in _tail(path).splitlines()]
    return one_line(next((line for line in reversed(lines) if line), "nothing was printed"))


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    reached: int
    """Of the budget, in the run's `budget_unit`."""
    success: float | None
    """Mean success of fresh rollouts in the latest 5 agent updates; none before the first."""


def progress_of(folder: Path, run: Run) -> Progress:
    """How far the run of a folder is, by the end of its metrics.jsonl."""
    rows: list[dict[str, Any]] = []
    for line in _tail(folder / "metrics.jsonl").splitlines():
        try:
            rows.append(json.loads(line))
        except ValueError:  # cut at the start of the tail, or half written
            continue
    unit = "update" if run.budget_unit == "agent_updates" else run.budget_unit
    learned = [row["success"] for row in rows if row["phase"] == "learn" and "success" in row]
    recent = learned[-RECENT:]
    return Progress(
        int(rows[-1].get(unit, 0)) if rows else 0,
        sum(recent) / len(recent) if recent else None,
    )


def _tail(path: Path) -> str:
    """The end of a file; nothing where it is not there."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - TAIL))
        return file.read().decode(errors="replace")
