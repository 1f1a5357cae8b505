"""The dense reward against the outcome: when they part, the dense reward is being hacked."""

from rewardswap.diagnosis.finding import Advice, Rule, Seen
from rewardswap.diagnosis.observed import DoesNotApplyError, Observed, change
from rewardswap.diagnosis.wording import short
from rewardswap.report.records import number
from rewardswap.report.series import dense_reward_key


def _dense_rows(run: Observed) -> tuple[str, tuple[str, ...]]:
    loop = run.setting("loop")
    phases = ("learn",) if loop == "dense" else ("explore", "harvest")
    name = dense_reward_key(key for row in run.rows(*phases) for key in row)
    if loop == "on_policy" or name is None:
        raise DoesNotApplyError("nothing learns under a dense reward")
    return name, phases


def _other_reward(run: Observed) -> tuple[Advice, ...]:
    return (
        Advice("--swap.on-hacking shorten", "an alarm ends phase 1"),
        Advice("--swap.explore-steps 1", "the explorer moves less under it"),
        Advice("--reward.add-outcome true", "the dense reward has the outcome added"),
        Advice("--reward.online true", "the model is fitted again after every loop"),
    )


def _alarm(run: Observed) -> Seen | None:
    _dense_rows(run)
    said = [row for row in run.warnings if row.get("kind") == "hacking"]
    alarms = [row["update"] for row in run.record.metrics if number(row.get("hacking_alarm"))]
    if not said and not alarms:
        return None
    evidence = [f"update {row.get('update')}: {row.get('words')}" for row in said[:2]]
    if not said:
        evidence = [f"the detector's alarm at update {alarms[0]:.0f}"]
    return Seen(
        "serious",
        "The dense reward is hacked: the detector gave an alarm.",
        tuple(evidence),
        _other_reward(run),
    )


def _parted(run: Observed) -> Seen | None:
    name, phases = _dense_rows(run)
    dense, outcome = (change(run.points(key, *phases)) for key in (name, "outcome_mean"))
    if not (dense.rose and outcome.fell):
        return None
    return Seen(
        "serious",
        "The dense reward rises while the outcome falls.",
        (
            f"{name} {short(dense.first.mean)} in {dense.first.where}, {short(dense.last.mean)} "
            f"in {dense.last.where}",
            f"outcome {short(outcome.first.mean)}, then {short(outcome.last.mean)}",
        ),
        _other_reward(run),
    )


RULES = (
    Rule(
        "hacking_alarm",
        "alarms of hacking",
        "a warning `hacking`, or `hacking_alarm` in any row",
        "docs/extensions.md",
        _alarm,
    ),
    Rule(
        "dense_against_outcome",
        "dense reward and outcome",
        "the interval of the change of the dense reward lies above 0, that of the outcome below",
        "95 % intervals (Student, Newcombe 1998)",
        _parted,
    ),
)
