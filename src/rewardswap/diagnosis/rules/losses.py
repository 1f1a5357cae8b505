"""What is lost or wrong on the way: episodes, rewards, steps, and engines that disagree."""

import math

from rewardswap.diagnosis.finding import Advice, Rule, Seen, Severity
from rewardswap.diagnosis.observed import NoDataError, Observed, last
from rewardswap.diagnosis.rules.policy import slower
from rewardswap.diagnosis.wording import percent, short
from rewardswap.monitors import LARGEST_ENGINE_GAP
from rewardswap.report.records import number

PHASES = ("explore", "harvest", "learn")
SOME_FAILED, MANY_FAILED = 0.01, 0.2
"""Shares of episodes that broke: some, and many (ours)."""
MANY_SKIPPED = 0.1
"""Share of updates with a skipped step that is many (ours)."""
MEAN_GAP = 1e-4
"""Mean gap in float32, nats a token, above which engines differ (ours, docs/metrics.md)."""


def _episodes(run: Observed) -> float:
    """How many episodes were played."""
    counted = [
        steps / turns
        for row in run.rows(*PHASES)
        if (steps := number(row.get("rollout/environment_steps")))
        and (turns := number(row.get("turns_mean")))
    ]
    if not counted:
        raise NoDataError("no rollout/environment_steps in metrics.jsonl")
    return sum(counted)


def _failed(run: Observed) -> Seen | None:
    failed = run.reached("failed_episodes")
    if not failed:
        return None
    share = failed / (_episodes(run) + failed)
    severity: Severity = "warning" if share > SOME_FAILED else "note"
    if share > MANY_FAILED:
        severity = "serious"
    return Seen(
        severity,
        "Episodes broke, and were not trained on.",
        (f"{failed:.0f} of {_episodes(run) + failed:.0f} ({percent(share)})",),
        (
            Advice("--rollout.workers 2", "environments in processes of their own"),
            Advice("--rollout.failure-limit 0.05", "the run stops with the cause, said by name"),
        ),
    )


def _restarts(run: Observed) -> Seen | None:
    count = run.total("rollout/worker_restarts", *PHASES)
    if not count:
        return None
    late = run.total("rollout/step_deadlines", *PHASES)
    again = run.total("rollout/replayed_steps", *PHASES)
    seconds = run.amount("rollout.step_seconds")
    longer = () if seconds is None or not late else (f"--rollout.step-seconds {2 * seconds:g}",)
    return Seen(
        "note",
        "Worker processes of environments were started again.",
        (f"{count:.0f} times, {late:.0f} of them for a deadline; {again:.0f} steps played again",),
        (
            *(Advice(words, "a longer deadline") for words in longer),
            Advice("", "an environment that dies or hangs: `python -m rewardswap play` shows it"),
        ),
    )


def _dropped_rewards(run: Observed) -> Seen | None:
    count = run.reached("dropped_rewards")
    if not count:
        return None
    return Seen(
        "warning",
        "The dense reward could not score some trajectories, which were left out.",
        (f"{count:.0f} trajectories in the whole run",),
        (Advice("--reward.on-failure stop", "the run stops with what the reward said"),),
    )


def _dropped_groups(run: Observed) -> Seen | None:
    count = run.reached("dropped_groups")
    if not count:
        return None
    return Seen(
        "warning",
        "Groups were left out: fewer than two of their episodes survived.",
        (f"{count:.0f} groups in the whole run",),
        (Advice("--rollout.workers 2", "environments in processes of their own"),),
    )


def _skipped(run: Observed) -> Seen | None:
    names = ("skipped_steps", "critic_skipped_steps")
    rows = run.rows("explore", "learn")
    counted = [sum(number(row.get(name)) or 0 for name in names) for row in rows]
    if not any(name in row for row in rows for name in names):
        raise NoDataError("no skipped_steps in metrics.jsonl")
    hit = [row["update"] for row, count in zip(rows, counted, strict=True) if count]
    if not hit:
        return None
    return Seen(
        "serious" if len(hit) > MANY_SKIPPED * len(rows) else "warning",
        "Optimizer steps were skipped: their loss or gradient was not finite.",
        (f"{sum(counted):.0f} steps in {len(hit)} of {len(rows)} updates (first: {hit[0]:.0f})",),
        slower(run),
    )


def _not_finite(run: Observed) -> Seen | None:
    broken: dict[str, list[float]] = {}
    for row in run.record.metrics:
        for name, value in row.items():
            if isinstance(value, float) and not math.isfinite(value):
                broken.setdefault(name, []).append(row["update"])
    if not broken:
        return None
    evidence = [
        f"{name} in {len(updates)} rows (first: update {updates[0]:.0f})"
        for name, updates in sorted(broken.items())[:3]
    ]
    if len(broken) > len(evidence):
        evidence.append(f"and {len(broken) - len(evidence)} other metrics")
    return Seen("serious", "Numbers of the record are not finite.", tuple(evidence), slower(run))


def _engine_gap(run: Observed) -> Seen | None:
    rows = run.rows("explore", "learn")
    gaps = [(gap, row["update"]) for row in rows if (gap := number(row.get("engine_gap_max")))]
    if not gaps:
        raise NoDataError("no engine_gap_max in metrics.jsonl")
    most, update = max(gaps)
    mean = last(run.points("engine_gap_mean", "learn"))
    exact = run.setting("policy.precision") == "float32"
    if most <= LARGEST_ENGINE_GAP and not (exact and mean.mean > MEAN_GAP):
        return None
    return Seen(
        "serious" if most > LARGEST_ENGINE_GAP else "warning",
        "Sampler and trainer differ: one of them is wrong, or they do not round alike.",
        (
            f"by up to {short(most)} nats at a token (update {update:.0f}), by "
            f"{short(mean.mean)} in the mean of {mean.where}",
        ),
        (
            Advice("--rollout.engine hugging_face", "the very module that is trained samples"),
            Advice("--policy.precision float32", "no rounding to bfloat16"),
            Advice("--method.importance-cap truncate", "bounds what replay makes of it"),
        ),
    )


RULES = (
    Rule(
        "not_finite",
        "finite numbers",
        "any metric is NaN or infinite",
        "ours",
        _not_finite,
    ),
    Rule(
        "skipped_steps",
        "skipped steps",
        f"`skipped_steps` above 0 (serious: in more than {MANY_SKIPPED:.0%} of the updates)",
        "ours",
        _skipped,
    ),
    Rule(
        "engine_gap",
        "sampler against trainer",
        f"`engine_gap_max` above {LARGEST_ENGINE_GAP} nats, or `engine_gap_mean` above "
        f"{MEAN_GAP:g} in float32",
        "ours",
        _engine_gap,
    ),
    Rule(
        "failed_episodes",
        "broken episodes",
        f"`failed_episodes` above 0 (warning: above {SOME_FAILED:.0%}, serious: above "
        f"{MANY_FAILED:.0%} of all)",
        "ours",
        _failed,
    ),
    Rule(
        "worker_restarts",
        "worker restarts",
        "`rollout/worker_restarts` above 0",
        "ours",
        _restarts,
    ),
    Rule(
        "dropped_rewards",
        "dropped rewards",
        "`dropped_rewards` above 0",
        "ours",
        _dropped_rewards,
    ),
    Rule(
        "dropped_groups",
        "dropped groups",
        "`dropped_groups` above 0",
        "ours",
        _dropped_groups,
    ),
)
