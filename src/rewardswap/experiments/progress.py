"""What a person sees while an experiment goes on: a live table, or plain lines in a file."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.live import Live
from rich.table import Table

from rewardswap.experiments.experiment import Job
from rewardswap.experiments.process import Progress

LATEST = 6
"""Ended runs that the table shows."""
EVERY = 60.0
"""Seconds between lines where there is no table."""


@dataclass(frozen=True)
class Row:
    """A run in the table."""

    job: Job
    state: str
    """running, done, failed or skipped."""
    seconds: float
    progress: Progress


class Board:
    """Prints through one console; the table is there on a terminal only."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._live: Live | None = None
        self._ended: list[Row] = []
        self._said = time.monotonic()

    def say(self, text: str) -> None:
        """A line that stays."""
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def started(self, job: Job) -> None:
        """A run begins; the live table shows that by itself."""
        if not self.console.is_terminal:
            self.say(f"started {job.label}")

    def ended(self, row: Row) -> None:
        """Keep an ended run for the table."""
        self._ended.append(row)

    def show(self, running: Sequence[Row], caption: str) -> None:
        """The table as it is; where there is no terminal, a line for each run every minute."""
        if not self.console.is_terminal:
            if time.monotonic() - self._said >= EVERY:
                self._said = time.monotonic()
                for row in running:
                    self.say(line(row))
            return
        if self._live is None:
            self._live = Live(console=self.console, auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(table([*self._ended[-LATEST:], *running], caption), refresh=True)

    def close(self) -> None:
        """Take the table away."""
        if self._live is not None:
            self._live.stop()
            self._live = None


def table(rows: Sequence[Row], caption: str) -> Table:
    """Arm, seed, state, how much of the budget is reached, seconds, success of fresh rollouts."""
    made = Table(caption=caption, caption_justify="left")
    made.add_column("arm")
    for name in ("seed", "state", "reached", "seconds", "success"):
        made.add_column(name, justify="right")
    for row in rows:
        made.add_row(*_cells(row))
    return made


def _cells(row: Row) -> list[str]:
    run, success = row.job.arm.run, row.progress.success
    return [
        row.job.arm.name,
        str(row.job.seed),
        row.state,
        f"{row.progress.reached}/{run.budget} {run.budget_unit.replace('_', ' ')}",
        f"{row.seconds:.0f}",
        "-" if success is None else f"{success:.1%}",
    ]


def line(row: Row) -> str:
    """The same of one run, where there is no table."""
    arm, seed, state, reached, seconds, success = _cells(row)
    return f"{state} {arm} seed {seed}: {reached}, {seconds} s, success so far {success}"


def spelled(seconds: float) -> str:
    """A length of time for a person: seconds, minutes or hours."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
