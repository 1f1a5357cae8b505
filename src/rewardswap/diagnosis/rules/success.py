"""Success itself: whether it rose, fell, parted from the dense reward, or cannot be told."""

from math import sqrt

from rewardswap.diagnosis.finding import Advice, Rule, Seen
from rewardswap.diagnosis.observed import (
    LEAST_ROWS,
    Change,
    NoDataError,
    Observed,
    change,
    last,
)
from rewardswap.diagnosis.rules.policy import LARGE_KL, slower
from rewardswap.diagnosis.wording import percent, points, short, within
from rewardswap.report.records import Json, number
from rewardswap.statistics import Interval, difference_interval

Measured = tuple[float, Interval]
"""Held-out success and its interval."""


def _held_out(evaluation: Json | None, when: str) -> Measured:
    success = number((evaluation or {}).get("success"))
    ends = (evaluation or {}).get("interval")
    if success is None or not isinstance(ends, list) or len(ends) != 2:
        raise NoDataError(f"no success with interval in evaluation-{when}.json")
    low, high = number(ends[0]), number(ends[1])
    if low is None or high is None:
        raise NoDataError(f"no success with interval in evaluation-{when}.json")
    return success, (low, high)


def _both(run: Observed) -> tuple[Measured, Measured, Interval]:
    """Held-out success before and after, and the interval of its difference."""
    before, after = _held_out(run.record.before, "before"), _held_out(run.record.after, "after")
    return before, after, difference_interval(*before, *after)


def _held_out_words(run: Observed) -> str:
    (before, low), (after, high), gap = _both(run)
    return (
        f"held-out success {percent(before)} {within(low)} before, {percent(after)} "
        f"{within(high)} after: {points(after - before)} points, 95 % interval "
        f"[{points(gap[0])}, {points(gap[1])}]"
    )


def _trained(run: Observed) -> Change:
    return change(run.points("success", "learn"))


def _trained_words(seen: Change) -> str:
    return (
        f"training success {percent(seen.first.mean)} in {seen.first.where}, "
        f"{percent(seen.last.mean)} in {seen.last.where}"
    )


def _undecided(run: Observed) -> Seen | None:
    if run.record.after is None:
        return _no_rise(run)
    (before, _), (after, _), gap = _both(run)
    if not gap[0] <= 0 <= gap[1]:
        return None
    evidence = [_held_out_words(run)]
    tasks = number((run.record.after.get("panel") or {}).get("tasks"))
    if tasks:
        mean = (before + after) / 2
        least = 1.96 * sqrt(2 * mean * (1 - mean) / tasks)
        evidence.append(
            f"with {tasks:.0f} tasks a difference below about {100 * least:.0f} points cannot be "
            "seen"
        )
    updates = max(row["update"] for row in run.record.metrics)
    evidence.append(f"the agent had {updates:.0f} updates")
    return Seen(
        "warning",
        "It cannot be told yet whether anything was learned: before and after overlap.",
        tuple(evidence),
        _longer(run, tasks),
    )


def _no_rise(run: Observed) -> Seen | None:
    seen = _trained(run)
    if seen.rose or _fall(run) is not None:
        return None
    return Seen(
        "warning",
        "It cannot be told yet whether anything is learned: training success has not moved.",
        (
            f"{_trained_words(seen)}: 95 % interval of the difference "
            f"[{points(seen.interval[0])}, {points(seen.interval[1])}] points",
        ),
        _longer(run, None),
    )


def _longer(run: Observed, tasks: float | None) -> tuple[Advice, ...]:
    budget = run.setting("budget")
    found = []
    if isinstance(budget, int):
        found.append(Advice(f"--budget {3 * budget}", "more updates"))
    if tasks:
        found.append(Advice(f"--env.evaluation-tasks {4 * tasks:.0f}", "halves the intervals"))
    return (*found, Advice("", "other seeds: `rewardswap experiment`"))


def _jump(run: Observed) -> str | None:
    """The largest divergence of one update, where that is too large."""
    moves = [(kl, row["update"]) for row in run.rows("learn") if (kl := number(row.get("kl_old")))]
    if not moves:
        raise NoDataError("no kl_old in the learn rows")
    most, update = max(moves)
    if most <= LARGE_KL:
        return None
    return f"update {update:.0f} moved the policy by {short(most)} nats a token"


def _fall(run: Observed) -> str | None:
    """How success fell, if it did: in training, held out, or from the start policy's."""
    try:
        trained: Change | None = _trained(run)
    except NoDataError:
        trained = None
    if trained is not None and trained.fell:
        return _trained_words(trained)
    if run.record.after is not None:
        fell = _both(run)[2][1] < 0
        rising = trained is not None and trained.rose
        return _held_out_words(run) if fell and not rising else None
    if run.amount("evaluation_temperature") != run.amount("policy.temperature"):
        return None  # the two successes below cannot be compared
    before, at_first = _held_out(run.record.before, "before")
    end = last(run.points("success", "learn"))
    if difference_interval(before, at_first, end.mean, end.interval)[1] >= 0:
        return None
    return (
        f"held-out success of the start policy {percent(before)} {within(at_first)}, training "
        f"success {percent(end.mean)} in {end.where}"
    )


def _fell(run: Observed) -> Seen | None:
    words = _fall(run)
    if words is None or _jump(run) is not None:
        return None  # after a jump it is the learning rate
    return Seen("serious", "Success fell.", (words,), slower(run))


def _too_quick(run: Observed) -> Seen | None:
    jump = _jump(run)
    words = _fall(run) if jump is not None else None
    if jump is None or words is None:
        return None
    rate = run.amount("policy.learning_rate")
    said = "" if rate is None else f", at a learning rate of {rate:g}"
    much = () if rate is None else (f"--policy.learning-rate {rate / 10:.2g}",)
    return Seen(
        "serious",
        "The learning rate is too high: success fell after the policy jumped.",
        (words, jump + said),
        (*(Advice(settings, "smaller steps") for settings in much), *slower(run)[1:]),
    )


def _overfitted(run: Observed) -> Seen | None:
    gap, trained = _both(run)[2], _trained(run)
    if gap[1] >= 0 or not trained.rose:
        return None
    advice = [Advice("--method.kl-coefficient 0.01", "holds it near the start policy")]
    budget = run.setting("budget")
    if isinstance(budget, int) and budget > 1:
        advice.append(Advice(f"--budget {budget // 2}", "stop before"))
    games = run.setting("env.generated_games")
    if isinstance(games, int):
        advice.append(Advice(f"--env.generated-games {4 * games}", "more tasks to learn from"))
    return Seen(
        "serious",
        "What is learned holds only for the training tasks: held-out success falls.",
        (_trained_words(trained), _held_out_words(run)),
        tuple(advice),
    )


_NEWCOMBE = "95 % intervals (Wilson 1927, Newcombe 1998)"

RULES = (
    Rule(
        "undecided",
        "success before and after",
        "the interval of the difference of held-out success holds 0; in an unfinished run that "
        f"of training success, first against last rows (at least {LEAST_ROWS} each)",
        _NEWCOMBE,
        _undecided,
    ),
    Rule(
        "success_fell",
        "fall of success",
        "the interval of the change of success, in training, held out, or from the start policy's "
        f"to training's, lies below 0, and no update has `kl_old` above {LARGE_KL}",
        _NEWCOMBE,
        _fell,
    ),
    Rule(
        "learning_rate_too_high",
        "fall after a jump",
        f"success fell as in `success_fell`, and `kl_old` is above {LARGE_KL} nats a token in any "
        "update",
        f"{_NEWCOMBE}; ours",
        _too_quick,
    ),
    Rule(
        "overfitted",
        "held-out and training success",
        "the interval of held-out success lies below 0, that of training success above",
        _NEWCOMBE,
        _overfitted,
    ),
)
