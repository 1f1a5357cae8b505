"""Rollouts: actions that the world refuses, episodes that are cut, answers that grow."""

from functools import partial
from math import ceil

from rewardswap.diagnosis.finding import Advice, Rule, Seen
from rewardswap.diagnosis.observed import NoDataError, Observed, change, last
from rewardswap.diagnosis.wording import percent, short

MANY_INVALID, MOST_INVALID = 0.3, 0.6
"""Shares of actions that the world refuses: many, and so many that little else is (ours)."""
MANY_UNFORMED = 0.1
"""Share of actions that are not in the prompt's form (ours)."""
MANY_CUT = 0.05
"""Share of turns, or of episodes, that a cap cuts (ours)."""
MANY_AT_LIMIT = 0.5
"""Share of episodes that the turn cap ends (ours)."""
NEARLY = 0.9
"""Share of the turn cap that one in ten wins needs where the cap cuts wins off (ours)."""
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


def _cut(run: Observed, count: str, of: str, words: str) -> Seen | None:
    share = last(run.shares(f"rollout/{count}", "learn", of=of))
    if share.mean <= MANY_CUT:
        return None
    what = "turns" if of == "steps" else "episodes"
    evidence = f"{percent(share.mean)} of the {what} in {share.where}"
    return Seen("warning", words, (evidence,), _CUT_ADVICE[count](run))


def _longer_actions(run: Observed) -> tuple[Advice, ...]:
    tokens = run.setting("policy.action_tokens")
    found = [Advice("--env.thinking forbidden", "answers without thinking are short")]
    if isinstance(tokens, int):
        found.insert(0, Advice(f"--policy.action-tokens {2 * tokens}", "longer actions"))
    return tuple(found)


def _shorter_context(run: Observed) -> tuple[Advice, ...]:
    return (
        Advice("--env.prompt verl_agent", "a prompt of the last turns only"),
        Advice("--env.wording short", "shorter observations"),
        *_longer_context(run),
    )


def _longer_context(run: Observed) -> tuple[Advice, ...]:
    limit = run.setting("rollout.context_limit")
    if not isinstance(limit, int):
        return (Advice("", "a model with more positions"),)
    return (Advice(f"--rollout.context-limit {2 * limit}", "room for more turns"),)


def _more_time(run: Observed) -> tuple[Advice, ...]:
    seconds = run.amount("rollout.episode_seconds")
    more = () if seconds is None else (f"--rollout.episode-seconds {2 * seconds:g}",)
    return tuple(Advice(words, "more time for an episode") for words in more) or (
        Advice("", "find out what is slow: the model, or the environment"),
    )


_CUT_ADVICE = {
    "truncated_turns": _longer_actions,
    "token_limit": _longer_actions,
    "context_full": _shorter_context,
    "time_limit": _more_time,
}


def _turn_limit(run: Observed) -> Seen | None:
    share = last(run.shares("rollout/turn_limit", "learn", of="episodes"))
    if share.mean <= MANY_AT_LIMIT:
        return None
    limit = run.setting("env.turn_limit")
    if not isinstance(limit, int):
        raise NoDataError("no env.turn_limit in config.toml")
    played = run.record.trajectories_after or run.record.trajectories_before
    if not played:
        raise NoDataError("no held-out episodes to see how many turns wins take")
    wins = sorted(len(t["turns"]) for t in played if t["success"])
    late = wins[ceil(0.9 * len(wins)) - 1] if wins else None
    if late is not None and late < NEARLY * limit:
        return None
    said = "no held-out episode was won"
    if late is not None:
        said = f"one in ten held-out wins took {late} turns or more"
    return Seen(
        "warning",
        "The turn cap ends most episodes, and wins need nearly as many turns.",
        (f"{percent(share.mean)} of the episodes end at {limit} turns ({share.where}); {said}",),
        (Advice(f"--env.turn-limit {2 * limit}", "time to finish"),),
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


_CUTS = (
    (
        "token_cap",
        "actions at the token cap",
        "truncated_turns",
        "steps",
        "The token cap cuts many actions.",
    ),
    (
        "token_cap_ends",
        "episodes at the token cap",
        "token_limit",
        "episodes",
        "The token cap of an action ends episodes.",
    ),
    (
        "context_full",
        "full contexts",
        "context_full",
        "episodes",
        "Episodes end because the context is full.",
    ),
    ("out_of_time", "time limits", "time_limit", "episodes", "Episodes run out of time."),
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
    *(
        Rule(
            cause,
            about,
            f"`rollout/{count}` above {MANY_CUT:.0%} of the "
            f"{'turns' if of == 'steps' else 'episodes'}",
            "ours",
            partial(_cut, count=count, of=of, words=words),
        )
        for cause, about, count, of, words in _CUTS
    ),
    Rule(
        "turn_cap",
        "turn cap",
        f"`rollout/turn_limit` above {MANY_AT_LIMIT:.0%} of the episodes, and no held-out win, or "
        f"one in ten that takes at least {NEARLY:.0%} of `env.turn-limit`",
        "ours",
        _turn_limit,
    ),
    Rule(
        "length_growth",
        "length of answers and episodes",
        f"tokens an action or `turns_mean` {GROWN} times what they were, and success did not rise",
        "ours",
        _growth,
    ),
)
