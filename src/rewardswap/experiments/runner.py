"""Runs the jobs of an experiment as processes, some at once, and stores their results."""

import time
from collections import Counter
from collections.abc import Callable, Sequence

from rewardswap.experiments.experiment import Experiment, Job
from rewardswap.experiments.places import Places
from rewardswap.experiments.process import (
    Command,
    Process,
    last_line,
    progress_of,
    start,
    training,
    undisturbed,
)
from rewardswap.experiments.progress import Board, Row, spelled
from rewardswap.experiments.schedule import expected_seconds, fits, to_make
from rewardswap.experiments.store import Json, Results

PAUSE = 0.5
"""Seconds between looks at the runs."""
ATTEMPTS = 2
"""Failures of an arm's runs after which it is skipped."""


class Runner:
    """Makes what is missing of an experiment.

    `limit` is in seconds from now: no run starts that would not end by then. `locks` are file
    descriptors that every run inherits.
    """

    def __init__(
        self,
        experiment: Experiment,
        results: Results,
        places: Places,
        board: Board,
        *,
        at_once: int = 2,
        limit: float | None = None,
        locks: Sequence[int] = (),
        command: Command = training,
        clock: Callable[[], float] = time.monotonic,
        pause: float = PAUSE,
    ) -> None:
        self.experiment = experiment
        self.results = results
        self.places = places
        self.board = board
        self.at_once = at_once
        self.limit = limit
        self._locks = locks
        self._command = command
        self._clock = clock
        self._pause = pause
        self._began = clock()
        self._waiting: list[Job] = []
        self.running: list[Process] = []
        """Runs that go on, or that were ended by an error."""
        self._failures: Counter[str] = Counter()
        self.skipped: set[str] = set()
        """Names of arms that failed too often, and of those that need their checkpoints."""

    def execute(self, jobs: Sequence[Job]) -> list[Job]:
        """Make the jobs that are missing; those that are still missing then, skipped ones too.

        Raises ValueError, with all runs ended, for a result that cannot be mixed with the others.
        """
        self._waiting = to_make(self.experiment, jobs, self._at_hand)
        self._adopt()
        try:
            while True:
                self._collect()
                self._fill()
                if not self.running:
                    break
                self._show()
                time.sleep(self._pause)
        finally:
            self.board.close()
            for process in self.running:
                process.end()
        return self._waiting

    def left(self) -> str:
        """What is still to be made, and how long it takes, in words."""
        expected = [self._expected(job) for job in self._waiting]
        known = [seconds for seconds in expected if seconds is not None]
        text = f"{len(self._waiting)} runs left"
        if known:
            text += f", {spelled(sum(known))} of processes"
        unknown = len(expected) - len(known)
        return text + (f" and {unknown} of unknown length" if known and unknown else "")

    def _at_hand(self, job: Job, checkpoint: bool) -> bool:
        there = self.results.done(job) is not None
        return there and (not checkpoint or self.places.checkpoint(job).is_dir())

    def _adopt(self) -> None:
        """Store runs that ended after their runner had gone, where they fit the others."""
        for job in list(self._waiting):
            if self.places.is_finished(job):
                try:
                    self._store(job)
                except ValueError as error:
                    self.board.say(f"{job.label} is made again: {error}")
                else:
                    self._waiting.remove(job)

    def _collect(self) -> None:
        for process in list(self.running):
            code = process.child.poll()
            if code is None:
                continue
            self.running.remove(process)
            if code == 0 and (self.places.folder(process.job) / "summary.json").is_file():
                self._store(process.job)
                self.board.ended(self._row(process, "done"))
            else:
                self.board.ended(self._row(process, "failed"))
                self._failed(process.job, code)

    def _store(self, job: Job) -> None:
        before = self.results.done(job)
        result = self.results.add(job, self.places.folder(job))
        self.board.say(f"done {job.label}: {_gain(result)}")
        if before is not None and before["tasks"] != result["tasks"]:
            self.board.say(
                f"warning: {job.label}, made again for its checkpoint, is not what the stored "
                "result says; runs that start from it belong to this one"
            )

    def _failed(self, job: Job, code: int) -> None:
        said = last_line(self.places.log(job))
        kept = self.places.set_aside(job)
        self._failures[job.arm.name] += 1
        self.board.say(f"failed {job.label} (exit code {code}): {said}; kept in {kept}")
        self._waiting.insert(0, job)
        if self._failures[job.arm.name] == ATTEMPTS:
            self.board.say(f"arm {job.arm.name} is skipped: it failed {ATTEMPTS} times")
            self.skipped.add(job.arm.name)

    def _fill(self) -> None:
        while len(self.running) < self.at_once:
            job = next((job for job in self._waiting if self._may_start(job)), None)
            if job is None:
                return
            if self.places.can_go_on(job, self.results.code):
                self.board.say(f"{job.label} goes on from its checkpoint")
            else:
                kept = self.places.set_aside(job)
                if kept is not None:
                    self.board.say(f"what {job.label} left before is kept in {kept}")
                self.places.write_config(job)
            self._waiting.remove(job)
            with undisturbed():
                self.running.append(start(job, self.places, self._command, self._locks))
            self.board.started(job)

    def _may_start(self, job: Job) -> bool:
        if job.arm.name in self.skipped:
            return False
        needed = self.experiment.needed(job)
        if needed is not None:
            if needed.arm.name in self.skipped:
                self.board.say(f"arm {job.arm.name} is skipped: it needs {needed.label}")
                self.skipped.add(job.arm.name)
                return False
            if needed in [*self._waiting, *(process.job for process in self.running)]:
                return False
        return fits(self._expected(job), self._clock() - self._began, self.limit)

    def _expected(self, job: Job) -> float | None:
        return expected_seconds(job.arm, self.results.lines, self.experiment)

    def _row(self, process: Process, state: str) -> Row:
        job = process.job
        progress = progress_of(self.places.folder(job), job.arm.run)
        return Row(job, state, process.seconds, progress)

    def _show(self) -> None:
        rows = [self._row(process, "running") for process in self.running]
        self.board.show(rows, f"{len(self.results.lines)} results; {self.left()}")


def _gain(result: Json) -> str:
    before, after = result["before"]["success"], result["after"]["success"]
    seconds = float(result["counters"]["seconds"])
    return f"success {before:.1%} -> {after:.1%} in {spelled(seconds)}"
