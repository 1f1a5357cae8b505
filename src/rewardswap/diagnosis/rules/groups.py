"""Groups that teach nothing: their outcomes, or their advantages, are all alike."""

from rewardswap.diagnosis.finding import Advice, Rule, Seen, Severity
from rewardswap.diagnosis.observed import LEAST_ROWS, NoDataError, Observed, last, worst
from rewardswap.diagnosis.wording import percent

FEW_INFORMATIVE = 0.3
"""Share of groups whose outcomes differ below which little is learned (ours, docs/metrics.md)."""
NO_INFORMATIVE = 0.1
"""The same below which nothing is (ours)."""
EASY = 0.8
"""Success from which alike groups only say that the tasks have become easy (ours)."""
MANY_ZERO = 0.7
"""Share of groups without an advantage above which little is learned (ours, docs/metrics.md)."""
LARGEST_GROUP = 64
"""Largest group that is proposed, in trajectories (ours)."""


def expected_informative(success: float, size: int) -> float:
    """1 - p^G - (1-p)^G: share of groups whose outcomes differ, were all tasks alike."""
    return 1 - success**size - (1 - success) ** size


def _uninformative(run: Observed) -> Seen | None:
    groups = last(run.points("informative_groups", "learn"))
    success = last(run.points("success", "learn"))
    if groups.mean >= FEW_INFORMATIVE:
        return None
    evidence = [
        f"{percent(groups.mean)} of the groups had outcomes that differ ({groups.where}); "
        f"success was {percent(success.mean)}"
    ]
    size = run.setting("batch.group_size")
    if isinstance(size, int):
        share = expected_informative(success.mean, size)
        evidence.append(
            f"were all tasks alike, {percent(share)} of groups of {size} would differ at this "
            "success (1 - p^G - (1-p)^G)"
        )
    easy = success.mean > EASY
    words = "Too few groups teach anything: siblings end alike, and so have no advantage."
    if easy:
        words = "The tasks have become easy: siblings win alike, and so have no advantage."
    severe: Severity = "serious" if groups.mean < NO_INFORMATIVE else "warning"
    advice = _harder(run) if easy else _more_contrast(run, success.mean)
    return Seen("note" if easy else severe, words, tuple(evidence), advice)


def _harder(run: Observed) -> tuple[Advice, ...]:
    return (
        Advice("--method dapo", "leaves such groups out and collects others in their place"),
        Advice("", "train on harder tasks, or stop here: what is left to learn is little"),
    )


def _more_contrast(run: Observed, success: float) -> tuple[Advice, ...]:
    size = run.setting("batch.group_size")
    found = []
    if isinstance(size, int) and success > 0:
        larger = 2 * size
        while larger < LARGEST_GROUP and expected_informative(success, larger) < 0.5:
            larger *= 2
        if larger <= LARGEST_GROUP:
            share = percent(expected_informative(success, larger))
            found.append(Advice(f"--batch.group-size {larger}", f"alike tasks: {share} differ"))
    limit = run.setting("env.turn_limit")
    if isinstance(limit, int):
        found.append(Advice(f"--env.turn-limit {2 * limit}", "longer episodes are won more often"))
    found.append(Advice("--method dapo", "leaves such groups out, collects others instead"))
    if success == 0:
        found.append(
            Advice("", "start from a policy that sometimes wins: `rewardswap sft`, or easier tasks")
        )
    return tuple(found)


def _zero_advantages(run: Observed) -> Seen | None:
    zero = last(run.points("zero_advantage_groups", "learn"))
    differ = last(run.points("informative_groups", "learn"))
    if zero.mean <= MANY_ZERO or differ.mean < FEW_INFORMATIVE:
        return None  # alike outcomes are the other rule's
    found = [Advice("--method grpo", "advantages from the group's mean, and nothing else")]
    if run.setting("swap.replay_advantage") == "mixed_group":
        found.insert(
            0,
            Advice(
                "--swap.replay-advantage collection_group",
                "selected successes have no advantage among themselves",
            ),
        )
    return Seen(
        "serious",
        "Groups have no advantage although their outcomes differ: the method takes it away.",
        (
            f"{percent(zero.mean)} of the groups gave no gradient ({zero.where}), while "
            f"{percent(differ.mean)} had outcomes that differ",
        ),
        tuple(found),
    )


def _missing(run: Observed) -> Seen | None:
    places = run.points("missing_groups", "learn")
    empty = [(update, value) for update, value in places if value > 0]
    if not empty:
        return None
    most = worst(places, max, LEAST_ROWS)
    if not any(value > 0 for _, value in run.points("filtered_groups", "learn")):
        raise NoDataError("missing_groups is above 0, but nothing was filtered")
    return Seen(
        "warning",
        "The method's filter leaves out more groups than it collects in their place.",
        (
            f"places stayed empty in {len(empty)} of {len(places)} updates, {most.mean:.1f} of "
            f"them in the mean of {most.where}",
        ),
        (
            Advice("--method grpo", "without a filter"),
            Advice("--batch.group-size 16", "larger groups are less often alike"),
        ),
    )


RULES = (
    Rule(
        "uninformative_groups",
        "informative groups",
        f"mean of `informative_groups` below {FEW_INFORMATIVE:.0%} (serious: below "
        f"{NO_INFORMATIVE:.0%}; a note where success is above {EASY:.0%})",
        "ours",
        _uninformative,
    ),
    Rule(
        "zero_advantages",
        "zero advantages",
        f"mean of `zero_advantage_groups` above {MANY_ZERO:.0%} while `informative_groups` is at "
        f"least {FEW_INFORMATIVE:.0%}",
        "ours",
        _zero_advantages,
    ),
    Rule(
        "unfilled_places",
        "unfilled places",
        "`missing_groups` above 0 in any update",
        "ours",
        _missing,
    ),
)
