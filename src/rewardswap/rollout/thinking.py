"""What stands between <think> and </think>: said before an action, and no part of it."""

from typing import Literal, get_args

Thinking = Literal["template", "kept", "stripped", "forbidden"]
"""What becomes of earlier thinking in later prompts of a chat. template: what the chat template
does with it; kept: it stays, whatever the template would do; stripped: it is left out;
forbidden: there is none, a template with a switch `enable_thinking` has it off."""

OPENS, CLOSES = "<think>", "</think>"


def thinks(said: str) -> bool:
    """Whether there is thinking in `said`; a template's header may have opened it already."""
    return OPENS in said or CLOSES in said


def without_thinking(said: str) -> str:
    """What is said behind the last thinking, without outer space; nothing if it never closes."""
    return said.rpartition(CLOSES)[2].partition(OPENS)[0].strip()


def checked_thinking(name: str) -> Thinking:
    """The name; raises ValueError for one that is no `Thinking`."""
    for known in get_args(Thinking):
        if name == known:
            return known  # type: ignore[no-any-return]
    raise ValueError(f"unknown thinking {name!r}, take one of {list(get_args(Thinking))}")
