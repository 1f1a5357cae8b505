"""Caps that cut actions and episodes off."""

from functools import partial
from math import ceil

from rewardswap.diagnosis.finding import Advice, Rule, Seen
from rewardswap.diagnosis.observed import NoDataError, Observed, last
from rewardswap.diagnosis.wording import percent

MANY_CUT = 0.05
"""Share of turns, or of episodes, that a cap cuts (ours)."""
MANY_AT_LIMIT = 0.5
"""Share of episodes that the turn cap ends (ours)."""
NEARLY = 0.9
"""Share of the turn cap that one in ten wins needs where the cap cuts wins off (ours)."""


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
    when, played = "after", run.record.trajectories_after
    if not played:
        when, played = "before", run.record.trajectories_before
    if not played:
        raise NoDataError("no held-out episodes to see how many turns wins take")
    wins = sorted(len(t["turns"]) for t in played if t["success"])
    late = wins[ceil(0.9 * len(wins)) - 1] if wins else None
    if late is not None and late < NEARLY * limit:
        return None
    said = f"no held-out episode was won {when} training"
    if late is not None:
        said = f"one in ten held-out wins took {late} turns or more {when} training"
    return Seen(
        "warning",
        "The turn cap ends most episodes, and wins need nearly as many turns.",
        (f"{percent(share.mean)} of the episodes end at {limit} turns ({share.where}); {said}",),
        (Advice(f"--env.turn-limit {2 * limit}", "time to finish"),),
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
)
