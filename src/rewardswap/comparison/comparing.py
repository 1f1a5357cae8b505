"""Everything that a report says of some results, as one value."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from rewardswap.comparison.arms import MIXABLE, Arm, arms_of, baseline_of, values_of
from rewardswap.comparison.curves import (
    AXES,
    Curve,
    Efficiency,
    common_steps,
    curve_of,
    efficiency,
)
from rewardswap.comparison.paired import Paired, paired
from rewardswap.comparison.results import Json

DRAWN = (("learn", "success"), ("learn", "dense"), ("explore", "success"), ("explore", "dense"))
"""Phases and columns that have curves."""


@dataclass(frozen=True)
class Comparison:
    """Arms, their comparisons with baselines, their curves, and what a reader must know."""

    arms: tuple[Arm, ...]
    pairs: tuple[Paired, ...]
    efficiencies: tuple[Efficiency, ...]
    """Of arms whose panel's runs all have curves."""
    curves: tuple[Curve, ...]
    mixture: str
    """What differs between the results though it should not, in a sentence; empty where nothing
    does."""
    notes: tuple[str, ...]
    """Sentences of what is missing."""


def compare(results: Iterable[Json], baseline: str | None, mix: Collection[str]) -> Comparison:
    """Compare results; their order changes nothing.

    Raises ValueError, in one line with the way out, for results that may not be compared.
    """
    arms = arms_of(results, baseline, mix)
    notes = [_one_seed(arms), *_recorded(arms)]
    pairs = []
    for arm in arms:
        other = baseline_of(arm, arms, mix)
        found = None if other is None else paired(arm, other)
        if found is not None:
            pairs.append(found)
        elif arm.baseline is not None:
            why = "no result yet" if other is None else "no seed in common with it"
            notes.append(f"{arm.name} is to be compared with {arm.baseline}, which has {why}.")
    if not pairs:
        notes.append("No arm is compared with another; --baseline ARM compares all with one.")
    for pair in pairs:
        if pair.left_out:
            seeds = ", ".join(map(str, pair.left_out))
            notes.append(f"{pair.arm} and {pair.baseline} do not both have seeds {seeds}.")
    curves = [
        curve
        for phase, column in DRAWN
        for axis in AXES
        for arm in arms
        if (curve := curve_of(arm, phase, column, axis)) is not None
    ]
    return Comparison(
        arms=tuple(arms),
        pairs=tuple(pairs),
        efficiencies=tuple(_efficiencies(arms, pairs)),
        curves=tuple(curves),
        mixture=_mixture(arms, pairs),
        notes=tuple(note for note in notes if note),
    )


def _one_seed(arms: Sequence[Arm]) -> str:
    alone = [arm.name for arm in arms if len(arm.runs) == 1]
    if not alone:
        return ""
    return f"One seed only, and so no interval over seeds: {', '.join(alone)}."


def _recorded(arms: Sequence[Arm]) -> Iterable[str]:
    """What the results themselves say of how they were made."""
    runs = [run for arm in arms for run in arm.runs]
    mixed = sorted({kind for run in runs for kind in run["mixed"]})
    if mixed:
        yield f"The results say that they were allowed to mix {', '.join(mixed)}."
    changed = [commit for commit in values_of("commits", runs) if commit.endswith("-dirty")]
    if changed:
        yield f"Made with changes that are in no commit: {', '.join(changed)}."


def _efficiencies(arms: Sequence[Arm], pairs: Sequence[Paired]) -> Iterable[Efficiency]:
    """Arms on one panel are measured at equal environment steps.

    Where there are comparisons, an arm in none of them is left out: a short one, which makes a
    start policy, would shorten all.
    """
    compared = {name for pair in pairs for name in (pair.arm, pair.baseline)}
    arms = [arm for arm in arms if arm.name in compared or not compared]
    for panel in sorted({arm.runs[0]["panel"]["hash"] for arm in arms}):
        here = [arm for arm in arms if arm.runs[0]["panel"]["hash"] == panel]
        steps = common_steps(here)
        if steps is not None:
            yield from (efficiency(arm, steps) for arm in here)


def _mixture(arms: Sequence[Arm], pairs: Sequence[Paired]) -> str:
    """What was mixed: commits among all results, the rest inside an arm or a comparison."""
    by_name = {arm.name: arm for arm in arms}
    compared = [[*arm.runs] for arm in arms]
    compared += [[*by_name[p.arm].runs, *by_name[p.baseline].runs] for p in pairs]
    groups = {
        kind: [arm.runs for arm in arms] if kind == "settings" else compared for kind in MIXABLE
    }
    groups["commits"] = [[run for arm in arms for run in arm.runs]]
    said = [
        f"{kind} ({' and '.join(values)})"
        for kind in MIXABLE
        for values in dict.fromkeys(tuple(values_of(kind, runs)) for runs in groups[kind])
        if len(values) > 1
    ]
    return f"Mixed: {'; '.join(said)}." if said else ""
