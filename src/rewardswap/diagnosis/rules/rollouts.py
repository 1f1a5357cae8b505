"""Rollouts: actions that the world refuses, episodes that are cut, answers that grow."""

from rewardswap.diagnosis.finding import Advice, Rule, Seen
from rewardswap.diagnosis.observed import Observed, change, last
from rewardswap.diagnosis.wording import percent, short

MANY_INVALID, MOST_INVALID = 0.3, 0.6
"""Shares of actions that the world refuses: many, and so many that little else is (ours)."""
MANY_UNFORMED = 0.1
"""Share of actions that are not in the prompt's form (ours)."""
GROWN = 1.5
"""Growth of tokens an action, or of turns, without a rise of success (ours)."""


def _invalid(run: Observed) -> Seen | None:
    refused = last(run.points("invalid_rate", "learn"))
    if refused.mean <= MANY_INVALID:
        return None
    return Seen(
        "serious" if refused.mean > MOST_INVALID else "warning",
        "The world refuses many actions.",
        (f"{percent(refused.mean)} of the actions in {refused.where}",),
        (
            Advice("", "read episodes first: report.html, or trajectories/train.jsonl"),
            Advice("--env.prompt verl_agent", "a prompt that lists what is admissible"),
            Advice("", "teach the form first: `rewardswap sft`, or a larger instruct model"),
        ),
    )


def _unformed(run: Observed) -> Seen | None:
    parts = {
        "are not in the prompt's form": "rollout/ill_formed_actions",
        "could not be read at all": "rollout/unsent_actions",
    }
    seen = {words: last(run.shares(name, "learn", of="steps")) for words, name in parts.items()}
    if all(found.mean <= MANY_UNFORMED for found in seen.values()):
        return None
    return Seen(
        "warning",
        "Many actions are not in the form that the prompt asks for.",
        tuple(f"{percent(s.mean)} {words} ({s.where})" for words, s in seen.items() if s.mean),
        (
            Advice("--env.action-format text", "everything behind the thinking is the action"),
            Advice("", "teach the form first: `rewardswap sft`, or a larger instruct model"),
        ),
    )


def _growth(run: Observed) -> Seen | None:
    success = change(run.points("success", "learn"))
    grown = {
        "tokens an action": change(run.shares("rollout/generated_tokens", "learn", of="steps")),
        "turns an episode": change(run.points("turns_mean", "learn")),
    }
    evidence = [
        f"{short(c.first.mean)} {what} in {c.first.where}, {short(c.last.mean)} in {c.last.where}"
        for what, c in grown.items()
        if c.rose and c.last.mean > GROWN * c.first.mean
    ]
    if not evidence or success.rose:
        return None
    return Seen(
        "warning",
        "Answers grow while success does not: length is learned instead.",
        (*evidence, f"success {percent(success.first.mean)} to {percent(success.last.mean)}"),
        (
            Advice("--method.average trajectory", "every trajectory counts the same"),
            Advice("--method dr_grpo", "without the bias to length"),
            Advice("--method.kl-coefficient 0.01", "holds it near the start policy"),
        ),
    )


RULES = (
    Rule(
        "invalid_actions",
        "refused actions",
        f"mean of `invalid_rate` above {MANY_INVALID:.0%} (serious: above {MOST_INVALID:.0%})",
        "ours",
        _invalid,
    ),
    Rule(
        "ill_formed_actions",
        "form of actions",
        f"`rollout/ill_formed_actions` or `rollout/unsent_actions` above {MANY_UNFORMED:.0%} of "
        "the turns",
        "ours",
        _unformed,
    ),
    Rule(
        "length_growth",
        "length of answers and episodes",
        f"tokens an action or `turns_mean` {GROWN} times what they were, and success did not rise",
        "ours",
        _growth,
    ),
)
