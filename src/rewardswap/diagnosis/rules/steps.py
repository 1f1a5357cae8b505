"""Steps of the optimizers: a policy that stands still, clipped gradients, a critic that errs."""

from rewardswap.diagnosis.finding import Advice, Rule, Seen
from rewardswap.diagnosis.observed import (
    LEAST_ROWS,
    DoesNotApplyError,
    NoDataError,
    Observed,
    last,
)
from rewardswap.diagnosis.rules.policy import LEAST_RATE, slower
from rewardswap.diagnosis.wording import percent, short
from rewardswap.recipes import RECIPES
from rewardswap.report.records import number

STILL_KL = 1e-6
"""Nats a token within one update below which nothing moves (ours)."""
ALWAYS = 0.95
"""Share of clipped steps that is always (ours)."""


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
    usual = RECIPES.get(str(run.setting("recipe")))
    known = None if usual is None else usual().policy.learning_rate
    more: tuple[Advice, ...] = ()
    if rate is not None and known is not None and known > rate:
        said = f"what recipe {run.setting('recipe')} has"
        more = (Advice(f"--policy.learning-rate {known:.2g}", said),)
    elif rate is not None:
        settings = f"--policy.learning-rate {max(rate * 100, LEAST_RATE):.2g}"
        more = (Advice(settings, "larger steps"),)
    said = "" if rate is None else f" at a learning rate of {rate:g}"
    return Seen(
        "serious",
        "Nothing moves: the learning rate is too low.",
        (
            f"no update of {len(moves)} moved the policy by more than {short(max(moves))} nats a "
            f"token{said}",
        ),
        (
            *more,
            Advice(
                "",
                "usual: 1e-6 for all weights of a large model, 1e-5 to 1e-4 for LoRA, 1e-4 to "
                "1e-3 for a model of a million weights",
            ),
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
