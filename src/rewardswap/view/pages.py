"""The page of a run as it is now, made anew no more often than is cheap."""

import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from threading import Lock

from rewardswap.report.page import render, render_waiting
from rewardswap.report.records import read_run

SHARE = 0.1
"""Largest share of one core that the pages of a run that goes on take (ours)."""
READ = ("*.json", "*.jsonl", "config.toml", "trajectories/*.jsonl")
"""What a page is made from."""


class Pages:
    """The newest page of one run folder, and the name of its version."""

    def __init__(self, run: Path, clock: Callable[[], float] = time.monotonic) -> None:
        """Raises ValueError where `run` is no folder."""
        if not run.is_dir():
            raise ValueError(f"{run} is not a folder; give the folder that a training run writes")
        runs = sorted(run.glob("*/config.toml"), key=lambda config: config.stat().st_mtime)
        if runs and not (run / "config.toml").is_file():
            raise ValueError(
                f"{run} holds {len(runs)} runs and is none itself; the newest is {runs[-1].parent}"
            )
        self.run = run
        self._clock = clock
        self._making = Lock()
        self._version = self._page = ""
        self._due = 0.0

    def version(self) -> str:
        """Of the page that `page` would give now: that of the files, or the last one's if it is
        too early for another."""
        early = self._page and self._clock() < self._due
        return self._version if early else stamp(self.run)

    def page(self) -> str:
        """The page as HTML; of a run without a line of metrics one that waits."""
        with self._making:
            version = self.version()
            if version != self._version:
                started = self._clock()
                self._page = self._made(version)
                self._version, ended = version, self._clock()
                self._due = ended + (ended - started) / SHARE
            return self._page

    def _made(self, version: str) -> str:
        if not _has_a_line(self.run / "metrics.jsonl"):
            words = "There is no update in this folder yet."
            return render_waiting(self.run.resolve().name, words, version)
        return render(read_run(self.run), version)

    def words(self) -> str:
        """Where the run is, in a few words."""
        if (self.run / "summary.json").is_file():
            return "The run has ended."
        lines = self.run / "metrics.jsonl"
        if not _has_a_line(lines):
            return "Waiting for the first update of the run."
        since = time.time() - lines.stat().st_mtime
        return f"Updates by itself. The last line of the run is {_ago(since)} old."


def stamp(run: Path) -> str:
    """A name for the state of the files that a page is made from."""
    found = []
    for path in sorted(path for pattern in READ for path in run.glob(pattern)):
        try:
            about = path.stat()
        except FileNotFoundError:  # a file that is being replaced
            continue
        found.append(f"{path.name} {about.st_size} {about.st_mtime_ns}")
    return sha256("\n".join(found).encode()).hexdigest()[:16]


def _has_a_line(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return any(line.endswith(b"\n") for line in file)
    except FileNotFoundError:
        return False


def _ago(seconds: float) -> str:
    if seconds < 120:
        return f"{max(0, seconds):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"
