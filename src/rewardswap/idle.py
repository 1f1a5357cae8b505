"""Settings that are named and would do nothing in the run that they make."""

from collections.abc import Sequence

from rewardswap.configuration import Run
from rewardswap.env_options import idle_in
from rewardswap.options import refuse_named
from rewardswap.settings import IDLE_SECTIONS

FITTING = ("reward.model", "reward.trajectories", "reward.group", "reward.temperatures")
"""Settings of a process reward model that is fitted in the run."""


def refuse_idle(run: Run, words: Sequence[str]) -> None:
    """Raise UsageError for an option among the words that does nothing in the run."""
    reasons: dict[str, Sequence[str]] = {
        f"in loop {run.loop!r}": [f"{section}." for section in IDLE_SECTIONS[run.loop]],
        "in a loop that does not explore": () if run.uses_dense_reward else ("reward.",),
        f"in dense reward {run.reward.dense!r}": () if run.reward.learned else FITTING,
        "with a process reward model of a folder": () if run.reward.folder is None else FITTING,
    }
    refuse_named({**reasons, **idle_in(run.env)}, words)
