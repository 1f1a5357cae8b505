"""What a Gymnasium-style environment answers, in one form (ours)."""

import math
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

TOLD = ("success", "score", "progress", "admissible", "valid", "state_key")
"""Keys of `info` that are read; all others are the environment's own affair."""
ROUNDING = 1e-6
"""By so much a sum of rewards may leave its range."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An observation, and what was said beside it."""

    text: str
    info: Mapping[str, Any]
    admissible: tuple[str, ...]
    reward: float = 0.0
    over: bool = False
    """Whether the episode is over, terminated or truncated."""


def opened(found: object) -> Answer:
    """What `reset` gave; raises ValueError unless it is a text, or a text and `info`."""
    parts = found if isinstance(found, tuple) else (found, {})
    if len(parts) != 2 or not isinstance(parts[1], Mapping):
        raise ValueError(
            f"reset must return a text, or a text and a dict, got {reprlib.repr(found)}"
        )
    return Answer(_text("reset", parts[0]), parts[1], _admissible(parts[1]))


def stepped(found: object) -> Answer:
    """What `step` gave; raises ValueError unless it is Gymnasium's five parts, a finite reward."""
    if not isinstance(found, tuple) or len(found) != 5:
        raise ValueError(
            "step must return (observation, reward, terminated, truncated, info), got "
            f"{reprlib.repr(found)}"
        )
    text, reward, terminated, truncated, info = found
    if not isinstance(reward, Real) or not math.isfinite(reward):
        raise ValueError(f"step's reward must be a finite number, got {reprlib.repr(reward)}")
    if not isinstance(info, Mapping):
        raise ValueError(f"step's info must be a dict, got {reprlib.repr(info)}")
    over = _flag("terminated", terminated) or _flag("truncated", truncated)
    return Answer(_text("step", text), info, _admissible(info), float(reward), over)


def ending(answer: Answer) -> tuple[bool, float]:
    """Success and outcome of an episode that is over.

    Raises ValueError, with the way to say them, where neither `success` nor the reward does.
    """
    if "success" in answer.info:
        success = _flag("info['success']", answer.info["success"])
        return success, float(success)
    if not 0 <= answer.reward <= 1:
        raise ValueError(
            f"the episode ended with a reward of {answer.reward:g}, which is no outcome in [0, 1]; "
            "give info['success'] (True or False) in its last step, or a last reward in [0, 1]"
        )
    return answer.reward == 1, answer.reward


def progress_of(returned: float, limits: tuple[float, float]) -> float:
    """The sum of rewards so far as a share of its range; raises ValueError outside of it."""
    low, high = limits
    share = (returned - low) / (high - low)
    if not -ROUNDING <= share <= 1 + ROUNDING:
        raise ValueError(
            f"the rewards of an episode sum to {returned:g}, outside return_range "
            f"({low:g}, {high:g}); set the environment's attribute return_range to the lowest and "
            "the highest sum, or give info['progress'] in [0, 1]"
        )
    return min(1.0, max(0.0, share))


def _text(where: str, found: object) -> str:
    if not isinstance(found, str):
        raise ValueError(f"the observation of {where} must be a text, got {reprlib.repr(found)}")
    return found


def _flag(name: str, found: object) -> bool:
    if type(found).__name__ not in ("bool", "bool_"):  # numpy's is no bool
        raise ValueError(f"{name} must be True or False, got {reprlib.repr(found)}")
    return bool(found)


def _admissible(info: Mapping[str, Any]) -> tuple[str, ...]:
    found = info.get("admissible", ())
    if not isinstance(found, tuple | list):
        raise ValueError(
            f"info['admissible'] must be a list of commands, got {reprlib.repr(found)}"
        )
    return tuple(found)
