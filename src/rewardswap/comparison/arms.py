"""Arms: the results of one configuration over its seeds, and what may be compared with what."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewardswap.comparison.intervals import Floats
from rewardswap.comparison.results import Json

MIXABLE = ("commits", "settings", "temperatures", "budgets")
"""What may differ between compared results if a person says so; panels never may."""


@dataclass(frozen=True)
class Arm:
    """The results of one arm, by seed."""

    name: str
    baseline: str | None
    """The arm that it is compared with."""
    runs: tuple[Json, ...]

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds, ascending."""
        return tuple(run["seed"] for run in self.runs)

    def of(self, seeds: Collection[int]) -> tuple[Json, ...]:
        """The results of some seeds, ascending."""
        return tuple(run for run in self.runs if run["seed"] in seeds)

    @property
    def families(self) -> tuple[str, ...]:
        """Types of task, in alphabetical order."""
        return tuple(sorted(self.runs[0]["after"]["families"]))

    @property
    def scores(self) -> Floats:
        """Success after training, [seeds, types]."""
        names = self.families
        rows = [[run["after"]["families"][name]["success"] for name in names] for run in self.runs]
        return np.array(rows, dtype=np.float64)


def arms_of(results: Iterable[Json], baseline: str | None, mix: Collection[str]) -> list[Arm]:
    """The arms in the order of their names, results by seed.

    `baseline` is the one of arms whose results name none. Raises ValueError, in one line with the
    way out, for an arm that has a seed twice, names two baselines or an unknown one, or mixes
    panels, or commits, settings, temperatures or budgets that neither `mix` nor a result allows.
    """
    by_name: dict[str, list[Json]] = {}
    for result in results:
        by_name.setdefault(result["arm"], []).append(result)
    if not by_name:
        raise ValueError("there is no result to report; give a file or run folder that holds one")
    if baseline is not None and baseline not in by_name:
        raise ValueError(f"--baseline {baseline} is no arm; there are {', '.join(sorted(by_name))}")
    arms = [_arm(name, by_name[name], baseline) for name in sorted(by_name, key=_natural)]
    refuse_mixture([run for arm in arms for run in arm.runs], ("commits",), "the results", mix)
    for arm in arms:
        refuse_mixture(arm.runs, ("panels", *MIXABLE), f"arm {arm.name}", mix)
    return arms


def _arm(name: str, results: Sequence[Json], baseline: str | None) -> Arm:
    runs = sorted(results, key=lambda run: run["seed"])
    seeds = [run["seed"] for run in runs]
    twice = next((seed for seed in seeds if seeds.count(seed) > 1), None)
    if twice is not None:
        raise ValueError(f"arm {name} has seed {twice} twice; give each result once")
    for run in runs:
        strange = sorted(run["after"]["families"].keys() ^ runs[0]["after"]["families"].keys())
        if strange:
            raise ValueError(
                f"arm {name} has type of task {strange[0]!r} in some seeds only; give results of "
                "one panel"
            )
    told = {run["baseline"] for run in runs}
    if len(told) > 1:
        raise ValueError(f"arm {name} is compared with {_listed(told)}; report them separately")
    own = told.pop() or baseline
    return Arm(name, None if own == name else own, tuple(runs))


def baseline_of(arm: Arm, arms: Sequence[Arm], mix: Collection[str]) -> Arm | None:
    """The arm that one is compared with, none if it names none or that has no result yet.

    Raises ValueError, in one line with the way out, if they cannot be compared.
    """
    found = next((other for other in arms if other.name == arm.baseline), None)
    if found is not None:
        what = f"arms {arm.name} and {found.name}"
        comparable = ("panels", "temperatures", "budgets")
        refuse_mixture([*arm.runs, *found.runs], comparable, what, mix)
    return found


def refuse_mixture(
    runs: Sequence[Json], kinds: Iterable[str], what: str, mix: Collection[str]
) -> None:
    """Raise ValueError naming two values that differ, unless that kind may be mixed."""
    allowed = {*mix, *(kind for run in runs for kind in run["mixed"])} & {*MIXABLE}
    for kind in kinds:
        values = values_of(kind, runs)
        if len(values) > 1 and kind not in allowed:
            out = f", or allow it with --mix {kind}" if kind in MIXABLE else ""
            raise ValueError(f"{what} mix {kind} ({' and '.join(values)}); report them apart{out}")


def values_of(kind: str, runs: Iterable[Json]) -> list[str]:
    """The values that results have of something mixable, each once."""
    return list(dict.fromkeys(_value(kind, run) for run in runs))


def _value(kind: str, run: Json) -> str:
    panel, budget = run["panel"], run["budget"]
    values: dict[str, Any] = {
        "commits": run["commit"] or f"version {run['versions'].get('rewardswap')}",
        "settings": run["settings"],
        "panels": f"{panel['split']} {panel['hash']}",
        "temperatures": f"{run['temperature']:g}",
        "budgets": f"{budget['amount']} {budget['unit']}",
    }
    return str(values[kind])


def _natural(name: str) -> list[str | int]:
    """Key that sorts names by their words and numbers: k-3 before k-10."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


def _listed(names: Iterable[str | None]) -> str:
    return " and ".join(sorted("nothing" if name is None else name for name in names))
