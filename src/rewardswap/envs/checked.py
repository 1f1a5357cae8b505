"""What an environment returns, checked in one place: types, ranges, and how much text (ours)."""

import reprlib
from itertools import islice
from math import nan
from numbers import Real

import numpy as np

from rewardswap.envs.base import Observation, Step

MOST_CHARACTERS = 1_000_000
"""Most characters of an observation's text, of its state key, and of all its admissible commands
together; more would take a tokenizer seconds and say nothing that a model reads."""
MOST_COMMANDS = 100_000
"""Most admissible commands of an observation."""


def checked_observation(found: object) -> Observation:
    """The observation in plain types; raises ValueError naming the field and what is wrong."""
    if not isinstance(found, Observation):
        raise ValueError(f"an Observation was due, got {reprlib.repr(found)}")
    text, key = _text("text", found.text), _text("state_key", found.state_key)
    return Observation(text, _commands(found.admissible), key, _share("progress", found.progress))


def checked_step(found: object) -> Step:
    """The step in plain types; raises ValueError naming the field and what is wrong."""
    if not isinstance(found, Step):
        raise ValueError(f"a Step was due, got {reprlib.repr(found)}")
    score = found.task_score
    return Step(
        checked_observation(found.observation),
        _flag("valid", found.valid),
        _flag("terminated", found.terminated),
        _flag("success", found.success),
        _share("outcome", found.outcome),
        None if score is None else _share("task_score", score),
    )


def _commands(found: object) -> tuple[str, ...]:
    if not isinstance(found, (tuple, list)):
        raise ValueError(f"admissible must be a tuple of texts, got {reprlib.repr(found)}")
    commands = tuple(islice(found, MOST_COMMANDS + 1))
    if len(commands) > MOST_COMMANDS:
        raise ValueError(
            f"admissible has more than {MOST_COMMANDS} commands; leave out what nobody would say"
        )
    if not {str}.issuperset(map(type, commands)):
        commands = tuple(_text("an admissible command", command) for command in commands)
    _text("admissible", "".join(commands))
    return commands


def _text(name: str, value: object) -> str:
    """The text as a plain one: one of a kind of its own (numpy's) may say anything of itself."""
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a text, got {reprlib.repr(value)}")
    value = str.__str__(value)
    if len(value) > MOST_CHARACTERS:
        raise ValueError(
            f"{name} has {len(value)} characters, at most {MOST_CHARACTERS} are taken; shorten it"
        )
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise ValueError(
                f"{name} has {value[error.start]!r} at {error.start}, which is no character"
            ) from error
    return value


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, got {reprlib.repr(value)}")
    return bool(value)


def _share(name: str, value: object) -> float:
    share = float(value) if isinstance(value, (float, Real)) else nan
    if not 0 <= share <= 1:
        raise ValueError(f"{name} must be a number in [0, 1], got {reprlib.repr(value)}")
    return share
