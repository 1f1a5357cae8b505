"""Replay and the explorer: what the buffer holds, and how far off policy it is."""

from rewardswap.diagnosis.finding import Advice, Rule, Seen
from rewardswap.diagnosis.observed import (
    LEAST_ROWS,
    DoesNotApplyError,
    Observed,
    Point,
    last,
    worst,
)
from rewardswap.diagnosis.rules.policy import LEAST_RATE
from rewardswap.diagnosis.wording import percent, short
from rewardswap.monitors import LEAST_EDIT_DISTANCE

WITHOUT_SUCCESS = 0.5
"""Share of the last loops whose buffer holds no success (ours)."""
LOW_ESS, LEAST_ESS = 0.5, 0.1
"""Effective sample size, as shares of the replayed tokens: little is left; hardly any is (ours, the
bounds of swap.adaptive)."""
STILL = 1e-5
"""Nats a token below which an explorer is the agent itself (ours)."""
FAR = 0.2
"""Nats a token above which an explorer is another policy (ours)."""


def _points(run: Observed, name: str) -> list[Point]:
    if run.setting("loop") in ("on_policy", "dense") or run.setting("swap.alpha") == 0:
        raise DoesNotApplyError("nothing is replayed")
    return run.points(name, "learn")


def _explorer(run: Observed) -> list[Point]:
    points = _points(run, "explorer_kl")
    if run.setting("swap.explore_steps") == 0:
        raise DoesNotApplyError("no explorer learns")
    return points


def _slower(run: Observed) -> list[Advice]:
    found = [Advice("--swap.explore-steps 1", "the explorer stays nearer")]
    rate = run.amount("swap.explorer_learning_rate") or run.amount("policy.learning_rate")
    if rate is not None:
        slow = f"--swap.explorer-learning-rate {rate / 3:.2g}"
        found.append(Advice(slow, "the explorer moves less in a step"))
    return found


def _without_success(run: Observed) -> Seen | None:
    sizes = dict(_points(run, "replay_size"))
    shares = [p for p in _points(run, "replay_success_share") if sizes.get(p[0])]
    recent = shares[-10:]
    empty = [update for update, share in recent if share == 0]
    if not recent or len(empty) / len(recent) < WITHOUT_SUCCESS:
        return None
    return Seen(
        "serious",
        "The buffer holds no success: replay has nothing to show the agent.",
        (
            f"no stored trajectory was won in {len(empty)} of the last {len(recent)} loops "
            f"(the last time behind update {empty[-1] - 1:.0f})",
        ),
        (
            Advice("--swap.explore-steps 6", "the explorer learns longer before its harvest"),
            Advice("--swap.harvest both", "what it played while it learned is kept too"),
            Advice("--reward.dense progress", "another dense reward"),
            Advice("--loop on_policy", "without replay, until the policy wins sometimes"),
        ),
    )


def _homogeneous(run: Observed) -> Seen | None:
    distance = last(_points(run, "replay_edit_distance"))
    if distance.mean >= LEAST_EDIT_DISTANCE:
        return None
    return Seen(
        "warning",
        "Replay shows the agent one way only: stored trajectories of a task are alike.",
        (
            f"their edit distance is {distance.mean:.2f} in the mean ({distance.where}); healthy "
            f"is above {LEAST_EDIT_DISTANCE}",
        ),
        (
            Advice("--swap.harvest both", "trajectories of several explorers"),
            Advice("--swap.replay-by uniform", "not the best ones only"),
            Advice("--method.entropy-coefficient 0.001", "a policy that keeps several ways"),
        ),
    )


def _collapsed_ess(run: Observed) -> Seen | None:
    points = _points(run, "effective_sample_size")
    low = worst(points, min)
    if low.mean >= LOW_ESS:
        return None
    return Seen(
        "serious" if low.mean < LEAST_ESS else "warning",
        "The effective sample size of replay collapsed: a few tokens carry all of it.",
        (
            f"{percent(low.mean)} of the replayed tokens count in {low.where}, "
            f"{percent(last(points).mean)} in the last {min(10, len(points))}",
        ),
        (
            *_slower(run),
            Advice("--method.importance-cap truncate", "bounds pi_old / pi_B"),
        ),
    )


def _still(run: Observed) -> Seen | None:
    moved = last(_explorer(run))
    if abs(moved.mean) >= STILL:
        return None
    found = [Advice("--swap.explore-steps 6", "more updates of the explorer")]
    rate = run.amount("swap.explorer_learning_rate") or run.amount("policy.learning_rate")
    if rate is not None:
        quick = f"--swap.explorer-learning-rate {max(rate * 10, LEAST_RATE):.2g}"
        found.insert(0, Advice(quick, "the explorer moves more in a step"))
    return Seen(
        "warning",
        "The explorer did not move: what is replayed is what the agent itself would have played.",
        (f"KL(pi_B, pi_theta) is {short(moved.mean)} nats a token ({moved.where})",),
        tuple(found),
    )


def _far(run: Observed) -> Seen | None:
    moved = worst(_explorer(run), max, LEAST_ROWS)
    if moved.mean <= FAR:
        return None
    return Seen(
        "warning",
        "The explorer moved too far: what it plays is not what the agent could play.",
        (f"KL(pi_B, pi_theta) is {short(moved.mean)} nats a token ({moved.where})",),
        tuple(_slower(run)),
    )


def _missing(run: Observed) -> Seen | None:
    points = _points(run, "missing_replay")
    short_of = [(update, count) for update, count in points if count > 0]
    if not short_of:
        return None
    return Seen(
        "warning",
        "The buffer could not give all trajectories that an update was to replay.",
        (
            f"{sum(count for _, count in short_of):.0f} were missing in {len(short_of)} of "
            f"{len(points)} updates (first: {short_of[0][0]:.0f})",
        ),
        (Advice("--swap.harvest both", "more is stored"),),
    )


RULES = (
    Rule(
        "replay_without_success",
        "successes in the buffer",
        f"`replay_success_share` 0 in at least {WITHOUT_SUCCESS:.0%} of the last 10 loops",
        "ours",
        _without_success,
    ),
    Rule(
        "homogeneous_replay",
        "variety of the buffer",
        f"mean of `replay_edit_distance` below {LEAST_EDIT_DISTANCE}",
        "the paper's review",
        _homogeneous,
    ),
    Rule(
        "effective_sample_size",
        "effective sample size",
        f"`effective_sample_size` below {LOW_ESS} in any 10 updates (serious: below {LEAST_ESS})",
        "ours",
        _collapsed_ess,
    ),
    Rule(
        "explorer_still",
        "movement of the explorer",
        f"mean of `explorer_kl` below {STILL:g} nats a token",
        "ours",
        _still,
    ),
    Rule(
        "explorer_far",
        "distance of the explorer",
        f"`explorer_kl` above {FAR} nats a token in any {LEAST_ROWS} loops",
        "ours",
        _far,
    ),
    Rule(
        "missing_replay",
        "size of the buffer",
        "`missing_replay` above 0 in any update",
        "ours",
        _missing,
    ),
)
