"""The run that a recipe and the words behind it say, and settings that would do nothing in it."""

from collections.abc import Iterable, Sequence

from rewardswap.configuration import Run
from rewardswap.env_options import ENVIRONMENT, elsewhere, idle_in
from rewardswap.options import Choice, parse, refuse_named, with_choices
from rewardswap.settings import IDLE_SECTIONS, named_method

METHOD = Choice("method", named_method, "`rewardswap methods` lists them")
FITTING = ("reward.model", "reward.trajectories", "reward.group", "reward.temperatures")
"""Settings of a process reward model that is fitted in the run."""


def run_of(start: Run, words: Sequence[str], program: str, beside: Iterable[str] = ()) -> Run:
    """The run that starts as `start`, with what the words change; `beside` as in `parse`.

    Raises UsageError for words that say no run, or a setting that would do nothing in it.
    """
    choices = (METHOD, ENVIRONMENT)
    chosen, rest = with_choices(start, words, *choices)
    beside = (*beside, *(f"--{choice.setting}" for choice in choices))
    run = parse(Run, chosen, rest, program, elsewhere(), beside)
    _refuse_idle(run, rest)
    return run


def _refuse_idle(run: Run, words: Sequence[str]) -> None:
    """Raise UsageError for an option among the words that does nothing in the run."""
    reasons: dict[str, Sequence[str]] = {
        f"in loop {run.loop!r}": [f"{section}." for section in IDLE_SECTIONS[run.loop]],
        "in a loop that does not explore": () if run.uses_dense_reward else ("reward.",),
        f"in dense reward {run.reward.dense!r}": () if run.reward.learned else FITTING,
        "with a process reward model of a folder": () if run.reward.folder is None else FITTING,
    }
    refuse_named({**reasons, **idle_in(run.env)}, words)
