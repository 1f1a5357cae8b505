"""Tries generated inputs of every kind and counts what came of them.

    python benchmarks/fuzz.py COUNT [FIRST]

Every input must be accepted or refused in one clear line; nothing may be written outside the
folder that is given, no code of a file may run, no process but git may be started, no connection
be made. Input n of a kind is the same in every run; FIRST is the number of the first (0).
Exit code 1 where an input did anything else.
"""

import logging
import sys
import time
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

from circumstances import circumstances
from rich.console import Console
from rich.table import Table

TESTS = Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "fuzz")]

from fuzzed import Tally, try_kind  # noqa: E402
from fuzzed_kinds import KINDS  # noqa: E402


def main(count: int, first: int) -> int:
    """Print the table; how many inputs did anything else."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    tallies: dict[str, Tally] = {}
    seconds: dict[str, float] = {}
    for name, kind in KINDS.items():
        started = time.monotonic()
        with TemporaryDirectory() as folder:
            number = max(1, round(count * kind.share))
            tallies[name] = try_kind(kind.tries, name, number, Path(folder) / "work", first=first)
        seconds[name] = time.monotonic() - started
    show(tallies, seconds)
    return sum(len(tally.wrong) for tally in tallies.values())


def show(tallies: dict[str, Tally], seconds: dict[str, float]) -> None:
    """The table, and what was wrong."""
    console = Console(width=100)
    table = Table(title="generated inputs", title_justify="left")
    table.add_column("kind")
    for column in ("tried", "accepted", "clear error", "anything else", "seconds"):
        table.add_column(column, justify="right")
    counts = ("accepted", "refused", "wrong")
    for name, tally in tallies.items():
        cells = [f"{tally.counts[each]:,}" for each in counts]
        table.add_row(name, f"{tally.tried:,}", *cells, f"{seconds[name]:.0f}")
    sums = [f"{sum(t.counts[each] for t in tallies.values()):,}" for each in counts]
    tried = f"{sum(t.tried for t in tallies.values()):,}"
    table.add_row("all", tried, *sums, f"{sum(seconds.values()):.0f}", style="bold")
    console.print(circumstances(), highlight=False)
    console.print(table)
    for tally in tallies.values():
        for line in tally.wrong:
            console.print(line.encode("ascii", "backslashreplace").decode(), markup=False)


if __name__ == "__main__":
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    raise SystemExit(1 if main(wanted, int(sys.argv[2]) if len(sys.argv) > 2 else 0) else 0)
