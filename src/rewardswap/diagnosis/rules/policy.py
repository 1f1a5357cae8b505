"""The policy's updates: divergence, entropy, clips, and steps that moved nothing."""

from rewardswap.diagnosis.finding import Advice, Rule, Seen
from rewardswap.diagnosis.observed import (
    LEAST_ROWS,
    DoesNotApplyError,
    NoDataError,
    Observed,
    change,
    last,
    worst,
)
from rewardswap.diagnosis.wording import percent, short

LARGE_KL = 0.05
"""Nats a token within one update above which it went too far (ours, docs/metrics.md)."""
FAR_FROM_START = 0.5
"""Nats a token to the start policy above which it has left it (ours)."""
COLLAPSED_ENTROPY = 0.1
"""Share of the first entropy that is left below which it has collapsed (ours)."""
DONE = 0.8
"""Success from which a low entropy only says that the policy is sure (ours)."""
LEAST_RATE = 1e-6
"""Learning rate below which nothing is proposed (verl-agent's)."""
LARGE_CLIP = 0.2
"""Share of clipped tokens on one side above which an update mostly stands still (ours,
docs/metrics.md)."""


def slower(run: Observed) -> tuple[Advice, ...]:
    """Advice to take smaller steps."""
    rate = run.amount("policy.learning_rate")
    found = []
    if rate is not None:
        found.append(Advice(f"--policy.learning-rate {rate / 3:.2g}", "smaller steps"))
    if run.amount("method.kl_coefficient") == 0:
        found.append(Advice("--method.kl-coefficient 0.01", "holds it near the start policy"))
    return tuple(found)


def _large_kl(run: Observed) -> Seen | None:
    lacking, evidence = [], []
    for phase, who in (("learn", "the agent"), ("explore", "the explorer")):
        try:
            most = worst(run.points("kl_old", phase), max, LEAST_ROWS)
        except NoDataError as error:
            lacking.append(error)
            continue
        if most.mean > LARGE_KL:
            evidence.append(
                f"{who} moved {short(most.mean)} nats a token in one update in the mean of "
                f"{most.where}"
            )
    if len(lacking) == 2:
        raise lacking[0]
    if not evidence:
        return None
    return Seen(
        "serious",
        "The policy jumps: its divergence within one update blew up.",
        tuple(evidence),
        slower(run),
    )


def _far_from_start(run: Observed) -> Seen | None:
    if run.amount("method.kl_coefficient") == 0:
        raise DoesNotApplyError("method.kl_coefficient is 0: the start policy is not asked")
    most = worst(run.points("kl_reference", "learn"), max, LEAST_ROWS)
    if most.mean <= FAR_FROM_START:
        return None
    weight = run.amount("method.kl_coefficient") or 0.01
    return Seen(
        "warning",
        "The policy has left the start policy far behind.",
        (f"the divergence is {short(most.mean)} nats a token in {most.where}",),
        (
            Advice(f"--method.kl-coefficient {weight * 3:.2g}", "a stronger pull back"),
            *slower(run),
        ),
    )


def _collapsed_entropy(run: Observed) -> Seen | None:
    entropy = change(run.points("entropy", "learn"))
    if entropy.last.mean >= COLLAPSED_ENTROPY * entropy.first.mean:
        return None
    sure = last(run.points("success", "learn")).mean > DONE
    return Seen(
        "note" if sure else "serious",
        "The entropy collapsed: the policy always says the same.",
        (
            f"{short(entropy.first.mean)} nats a token in {entropy.first.where}, "
            f"{short(entropy.last.mean)} in {entropy.last.where}",
        ),
        (
            Advice("--method.clip-high 0.28", "rare tokens may become more frequent (DAPO)"),
            Advice("--method.entropy-coefficient 0.001", "a bonus on entropy"),
            *slower(run),
        ),
    )


def _clipped(run: Observed, side: str) -> Seen | None:
    points = run.points(f"clip_{side}_share", "learn")
    most = worst(points, max)
    if most.mean <= LARGE_CLIP:
        return None
    where = "below" if side == "low" else "above"
    other = "high" if side == "low" else "low"
    beside = last(run.points(f"clip_{other}_share", "learn"))
    minibatches = run.setting("policy.minibatches")
    fewer = (
        (Advice(f"--policy.minibatches {minibatches // 2}", "fewer steps away from pi_old"),)
        if isinstance(minibatches, int) and minibatches > 1
        else ()
    )
    return Seen(
        "warning",
        f"The clip stops much of the gradient from {where}.",
        (
            f"{percent(most.mean)} of the tokens are clipped {where} in {most.where}; on the "
            f"other side {percent(beside.mean)} in {beside.where}",
        ),
        (*fewer, *slower(run)[:1]),
    )


RULES = (
    Rule(
        "large_kl",
        "divergence within an update",
        f"`kl_old` above {LARGE_KL} nats a token in the mean of any {LEAST_ROWS} updates",
        "ours",
        _large_kl,
    ),
    Rule(
        "far_from_start",
        "divergence to the start policy",
        f"`kl_reference` above {FAR_FROM_START} nats a token in any {LEAST_ROWS} updates",
        "ours",
        _far_from_start,
    ),
    Rule(
        "collapsed_entropy",
        "entropy",
        f"`entropy` below {COLLAPSED_ENTROPY:.0%} of what it was at first (a note where success "
        f"is above {DONE:.0%})",
        "ours",
        _collapsed_entropy,
    ),
    Rule(
        "clipped_below",
        "clips below",
        f"`clip_low_share` above {LARGE_CLIP:.0%} in any 10 updates",
        "ours",
        lambda run: _clipped(run, "low"),
    ),
    Rule(
        "clipped_above",
        "clips above",
        f"`clip_high_share` above {LARGE_CLIP:.0%} in any 10 updates",
        "ours",
        lambda run: _clipped(run, "high"),
    ),
)
