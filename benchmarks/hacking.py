"""How often the detector of hacking is wrong: simulated runs, healthy and hacked, many seeds.

    python benchmarks/hacking.py [SEEDS [PART_OF_A_RUN'S_NAME [FIRST_SEED]]]

A row is one kind of run of 120 batches under a dense reward, as tests/hacking_runs.py makes them.
`alone` columns are single signs with the specification's thresholds, no matter how short they last.
"""

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import median

from circumstances import circumstances
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from hacking_runs import ONSET, RUNS, Run, batches, first_alarm, naive_alarm
from rewardswap.loops.hacking_rules import HackingRules

OFF = 1e9
"""Standard errors that nothing reaches."""
OURS = HackingRules()
UNHELD = replace(
    OURS, held=1, gain_held=1, long_z=OFF, gain_z=OFF, trend_z=OFF, least_correlation=-0.999
)
ALONE = {
    "gain": replace(UNHELD, gain_z=OURS.gain_z),
    "trend": replace(UNHELD, trend_z=OURS.trend_z),
    "correlation": replace(UNHELD, least_correlation=0.1, correlation_updates=1),
}


def row(run: Run, trajectories: int, seeds: range) -> list[str]:
    """Shares of the seeds with an alarm, by which rules, and how long it took."""
    runs = [list(batches(run, trajectories, seed)) for seed in seeds]
    found = [first_alarm(run, seen, OURS) for seen in runs]
    alarms = [one for one in found if one is not None]
    by = Counter(rule for _, alarm in alarms for rule in alarm.rules)
    late = f"{median(update for update, _ in alarms) - ONSET:.0f}" if run.hacked and alarms else ""
    alone = [
        sum(first_alarm(run, seen, rules) is not None for seen in runs) for rules in ALONE.values()
    ]
    counts = (len(alarms), *alone, sum(naive_alarm(seen) for seen in runs))
    shares = [f"{count / len(seeds):.1%}" for count in counts]
    said = ", ".join(f"{rule} {count}" for rule, count in by.most_common())
    return [run.name, str(trajectories), shares[0], said, late, *shares[1:]]


def main(seeds: range, named: str) -> None:
    """Print the table."""
    table = Table(title=f"runs with an alarm, seeds {seeds[0]} to {seeds[-1]}")
    for name in ("run", "n", "alarm", "rules", "batches after onset", *ALONE, "naive"):
        table.add_column(name if name not in ALONE else f"{name} alone")
    for hacked in (False, True):
        for run in RUNS:
            if run.hacked == hacked and named in run.name:
                for trajectories in (56, 128):
                    table.add_row(*row(run, trajectories, seeds))
        table.add_section()
    console = Console(width=150)
    console.print(circumstances())
    console.print(table)


if __name__ == "__main__":
    given = dict(enumerate(sys.argv))
    first = int(given.get(3, 0))
    main(range(first, first + int(given.get(1, 100))), given.get(2, ""))
