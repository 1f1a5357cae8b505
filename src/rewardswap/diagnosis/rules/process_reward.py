"""Process rewards that cannot teach: chance, length, one kind of outcome, one value."""

from rewardswap.diagnosis.finding import Advice, Rule, Seen
from rewardswap.diagnosis.observed import (
    DoesNotApplyError,
    NoDataError,
    Observed,
    last,
)
from rewardswap.diagnosis.wording import percent
from rewardswap.report.records import Json, number

LEAST_AUC = 0.55
"""AUC at fixed turns below which a process reward knows no more than chance (ours)."""
BELOW_CHANCE = 0.45
"""AUC below which it ranks failures above successes (ours)."""
GOOD_TOTAL = 0.6
"""AUC of the total from which a reward that is chance at fixed turns counts turns (ours)."""
COLLAPSED_SHARE = 0.5
"""Share of the last loops with alike turn rewards (ours)."""


def _quality(run: Observed) -> Json:
    loop = run.setting("loop")
    if loop == "on_policy" or run.setting("swap.explore_steps") == 0:
        raise DoesNotApplyError("nothing learns under a dense reward")
    if run.setting("reward.dense") not in (None, "learned"):
        raise DoesNotApplyError("the dense reward is no model")
    if run.record.process_reward is None:
        raise NoDataError("no prm.json")
    return run.record.process_reward


def _aucs(run: Observed) -> tuple[float, float, str]:
    """AUC in total and at fixed turns, and both in a sentence."""
    quality = _quality(run)
    total, fixed = number(quality.get("auc_total")), number(quality.get("auc_at_fixed_turns"))
    if total is None or fixed is None:
        raise NoDataError("no auc_total or auc_at_fixed_turns in prm.json")
    length = number(quality.get("auc_length_only"))
    held_out = number(quality.get("held_out_trajectories")) or 0
    alone = "" if length is None else f" (episode length alone: {length:.2f})"
    return (
        total,
        fixed,
        f"AUC {total:.2f} in total{alone}, {fixed:.2f} among episodes still running at a fixed "
        f"turn, on {held_out:.0f} held-out episodes; chance is 0.50",
    )


def _advice(run: Observed) -> tuple[Advice, ...]:
    count = run.setting("reward.trajectories")
    more = f"--reward.trajectories {2 * count}" if isinstance(count, int) else ""
    return (
        Advice(more, "more episodes to fit it on"),
        Advice("--reward.model.features after_observation", "it sees what an action brought"),
        Advice("--reward.model.layers all", "it reads every layer"),
        Advice("--reward.model.loss-on prefixes", "it is fitted after every turn"),
        Advice("--reward.dense progress", "the environment's own rule instead of a model"),
    )


def _chance(run: Observed) -> Seen | None:
    total, fixed, words = _aucs(run)
    if fixed >= LEAST_AUC or fixed < BELOW_CHANCE or total >= GOOD_TOTAL:
        return None
    return Seen("serious", "The process reward is no better than chance.", (words,), _advice(run))


def _length(run: Observed) -> Seen | None:
    total, fixed, words = _aucs(run)
    if fixed >= LEAST_AUC or fixed < BELOW_CHANCE or total < GOOD_TOTAL:
        return None
    return Seen(
        "serious",
        "The process reward counts turns: it knows no more than how long an episode was.",
        (words,),
        _advice(run),
    )


def _below(run: Observed) -> Seen | None:
    _, fixed, words = _aucs(run)
    if fixed >= BELOW_CHANCE:
        return None
    return Seen(
        "serious",
        "The process reward is worse than chance: it ranks failures above successes.",
        (words,),
        _advice(run),
    )


def _one_kind(run: Observed) -> Seen | None:
    quality = _quality(run)
    count = number(quality.get("held_out_trajectories"))
    wins = number(quality.get("held_out_successes"))
    if count is None or wins is None:
        raise NoDataError("no held_out_successes in prm.json")
    if 0 < wins < count:
        return None
    return Seen(
        "serious",
        "The process reward was fitted on one kind of outcome: nothing can be told from it.",
        (f"{wins:.0f} of {count:.0f} held-out episodes of the start policy were won",),
        (
            *_advice(run)[:1],
            Advice("--reward.temperatures 0.7 1.0 1.5", "hotter episodes differ more"),
            Advice("--reward.dense progress", "the environment's own rule, which needs no wins"),
            Advice("", "start from a policy that sometimes wins and sometimes fails"),
        ),
    )


def _collapsed(run: Observed) -> Seen | None:
    if run.setting("loop") not in (None, "rspo") or run.setting("swap.explore_steps") == 0:
        raise DoesNotApplyError("no explorer learns under a dense reward")
    alike = last(run.points("turn_rewards_collapsed", "learn", "harvest"))
    if alike.mean < COLLAPSED_SHARE:
        return None
    return Seen(
        "serious",
        "The dense reward pays every turn the same: it teaches at most how long to play.",
        (f"turn rewards were all alike in {percent(alike.mean)} of the loops ({alike.where})",),
        (
            Advice("--swap.explore-steps 1", "the explorer moves less under it"),
            Advice("--reward.online true", "the model is fitted again after every loop"),
            Advice("--reward.dense progress", "the environment's own rule"),
        ),
    )


_BOUNDS = "`auc_at_fixed_turns` of prm.json"

RULES = (
    Rule(
        "process_reward_chance",
        "process reward: chance",
        f"{_BOUNDS} below {LEAST_AUC}, and `auc_total` below {GOOD_TOTAL}",
        "ours, as the run's own warning",
        _chance,
    ),
    Rule(
        "process_reward_length",
        "process reward: length",
        f"{_BOUNDS} below {LEAST_AUC}, and `auc_total` at least {GOOD_TOTAL}",
        "ours, as the run's own warning",
        _length,
    ),
    Rule(
        "process_reward_reversed",
        "process reward: order",
        f"{_BOUNDS} below {BELOW_CHANCE}",
        "ours, as the run's own warning",
        _below,
    ),
    Rule(
        "process_reward_one_kind",
        "process reward: outcomes",
        "all or none of `held_out_trajectories` of prm.json were won",
        "ours",
        _one_kind,
    ),
    Rule(
        "collapsed_turn_rewards",
        "spread of turn rewards",
        f"`turn_rewards_collapsed` in at least {COLLAPSED_SHARE:.0%} of the last loops",
        "ours; collapsed: a deviation of at most 1/1000 of the root mean square",
        _collapsed,
    ),
)
