"""The table of what arms make of equal environment steps."""

from rewardswap.comparison.comparing import Comparison
from rewardswap.comparison.intervals import holm
from rewardswap.comparison.paired import difference_over_seeds
from rewardswap.comparison.tables import Table, count, estimate, text
from rewardswap.comparison.wording import number, p_value, points, share


def efficiency_table(comparison: Comparison) -> Table:
    """What arms make of equal environment steps, and there against their baselines."""
    found = {one.arm: one for one in comparison.efficiencies}
    gains = {
        pair.arm: difference_over_seeds(
            *(
                [found[name].areas[seed] for seed in pair.seeds]
                for name in (pair.arm, pair.baseline)
            )
        )
        for pair in comparison.pairs
        if pair.arm in found
    }
    adjusted = dict(zip(gains, holm([p for _, p in gains.values()]), strict=True))
    rows = tuple(
        {
            "arm": arm,
            "seeds": one.area.seeds,
            "environment_steps": one.steps,
            **estimate("area", one.area),
            **estimate("difference", gains[arm][0] if arm in gains else None),
            "p_holm": adjusted.get(arm),
            **estimate("at_steps", one.at_steps),
        }
        for arm, one in found.items()
    )
    shown = {
        "arm": text("arm"),
        "seeds": text("seeds"),
        "environment steps": number("environment_steps", 0),
        "mean success up to there": share("area"),
        "minus its baseline, points": points("difference"),
        "p, Holm": p_value("p_holm"),
        "success there": share("at_steps"),
    }
    notes = (
        "Success of the agent's fresh rollouts on its training tasks, not on the panel. Measured "
        "up to the largest count of environment steps of explorer and agent that every run of the "
        "compared arms on a panel has reached (rollouts that a process reward was fitted on are "
        "not among them): area under the curve divided by that count, and running mean there; "
        "mean over seeds, Student's t interval of 95 %. Up to the first update it is the success "
        "before training.",
        f"This table makes {count(len(gains), 'comparison')} with a baseline.",
    )
    return Table("efficiency", "At equal environment steps", notes, rows, shown)
