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
from rewardswap.report.records import number

LARGE_KL = 0.05
"""Nats a token within one update above which it went too far (ours, docs/metrics.md)."""
FAR_FROM_START = 0.5
"""Nats a token to the start policy above which it has left it (ours)."""
COLLAPSED_ENTROPY = 0.1
"""Share of the first entropy that is left below which it has collapsed (ours)."""
DONE = 0.8
"""Success from which a low entropy only says that the policy is sure (ours)."""
LARGE_CLIP = 0.2
"""Share of clipped tokens on one side above which an update mostly stands still (ours,
docs/metrics.md)."""
STILL_KL = 1e-6
"""Nats a token within one update below which nothing moves (ours)."""
LEAST_RATE = 1e-6
"""Learning rate below which nothing is proposed (verl-agent's)."""
ALWAYS = 0.95
"""Share of clipped steps that is always (ours)."""


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
    evidence = []
    for phase, who in (("learn", "the agent"), ("explore", "the explorer")):
        if phase == "explore" and not run.rows(phase):
            continue
        most = worst(run.points("kl_old", phase), max, LEAST_ROWS)
        if most.mean > LARGE_KL:
            evidence.append(
                f"{who} moved {short(most.mean)} nats a token in one update in the mean of "
                f"{most.where}"
            )
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


def _still(run: Observed) -> Seen | None:
    if run.setting("policy.minibatches") == 1:
        raise NoDataError("with one minibatch kl_old is 0 whatever moves")
    run.points("kl_old", "learn")
    learning = [row for row in run.rows("learn") if row.get("zero_advantage_groups") != 1]
    moves = [abs(kl) for row in learning if (kl := number(row.get("kl_old"))) is not None]
    if len(moves) < LEAST_ROWS:
        raise NoDataError(f"{len(moves)} updates had a gradient, {LEAST_ROWS} are needed")
    if max(moves) >= STILL_KL:
        return None
    rate = run.amount("policy.learning_rate")
    more = () if rate is None else (f"--policy.learning-rate {max(rate * 100, LEAST_RATE):.2g}",)
    said = "" if rate is None else f" at a learning rate of {rate:g}"
    return Seen(
        "serious",
        "Nothing moves: the learning rate is too low.",
        (
            f"no update of {len(moves)} moved the policy by more than {short(max(moves))} nats a "
            f"token{said}",
        ),
        (
            *(Advice(settings, "larger steps") for settings in more),
            Advice("", "usual: 1e-6 for all weights of a large model, 1e-5 to 1e-4 for LoRA"),
        ),
    )


def _always_clipped(run: Observed) -> Seen | None:
    points = run.points("gradient_clipped", "learn")
    clipped = last(points)
    if clipped.mean < ALWAYS:
        return None
    norm = last(run.points("gradient_norm", "learn"))
    bound = run.amount("policy.gradient_clip")
    wider = () if bound is None else (Advice(f"--policy.gradient-clip {norm.mean:.2g}", "rarer"),)
    return Seen(
        "note",
        "Every gradient is clipped: its size says nothing any more.",
        (
            f"{percent(clipped.mean)} of the steps in {clipped.where}; the norm before clipping is "
            f"{short(norm.mean)}" + ("" if bound is None else f", the bound {bound:g}"),
        ),
        (*wider, *slower(run)[:1]),
    )


def _worse_critic(run: Observed) -> Seen | None:
    if not any("explained_variance" in row for row in run.rows("learn")):
        raise DoesNotApplyError("the method has no critic")
    explained = last(run.points("explained_variance", "learn"))
    if explained.mean >= 0:
        return None
    return Seen(
        "serious",
        "The critic is worse than a constant: its advantages are noise.",
        (f"explained variance {explained.mean:.2f} in the mean of {explained.where}",),
        (
            Advice("--method.critic-warmup 10", "the critic learns alone first"),
            *_slower_critic(run),
            Advice("--method grpo", "a method without a critic"),
        ),
    )


def _slower_critic(run: Observed) -> tuple[Advice, ...]:
    rate = run.amount("policy.learning_rate")
    ten = run.amount("method.critic_learning_rate") or (None if rate is None else 10 * rate)
    if ten is None:
        return ()
    return (Advice(f"--method.critic-learning-rate {ten / 3:.2g}", "smaller steps of the critic"),)


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
    Rule(
        "still_policy",
        "movement of the policy",
        f"`kl_old` below {STILL_KL:g} nats a token in every update that had a gradient",
        "ours",
        _still,
    ),
    Rule(
        "always_clipped_gradient",
        "clipped gradients",
        f"`gradient_clipped` at least {ALWAYS:.0%} in the mean",
        "ours",
        _always_clipped,
    ),
    Rule(
        "worse_critic",
        "critic",
        "mean of `explained_variance` below 0",
        "a constant explains 0",
        _worse_critic,
    ),
)
