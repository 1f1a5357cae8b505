"""What an environment may return, and what is said of everything else."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import repeat
from typing import Any

import numpy as np
import pytest

from rewardswap.envs.base import Observation, Step
from rewardswap.envs.checked import (
    MOST_CHARACTERS,
    MOST_COMMANDS,
    checked_observation,
    checked_step,
)
from rewardswap.envs.faulty import forced

SEEN = Observation("a room", ("look", "go"), "key", 0.5)
STEP = Step(SEEN, True, False, False, 0.0)


class Short(str):
    """A text that says it has three characters."""

    def __len__(self) -> int:
        return 3


class Endless(tuple[str, ...]):
    """Commands without an end."""

    def __iter__(self) -> Iterator[str]:
        return repeat("look")


def test_texts_of_other_kinds_become_plain_ones() -> None:
    """A checkpoint holds plain ones only."""
    other = forced(SEEN, text=np.str_("a room"), state_key=Short("key"), admissible=[Short("go")])
    found = checked_observation(other)
    assert found == replace(SEEN, admissible=("go",))
    texts = (found.text, found.state_key, *found.admissible)
    assert [type(text) for text in texts] == [str] * 3
    many = replace(SEEN, admissible=("",) * MOST_COMMANDS)
    assert checked_observation(many) == many


def test_what_is_right_stays_as_it_is() -> None:
    assert checked_observation(SEEN) == SEEN
    assert checked_step(STEP) == STEP
    scored = replace(STEP, terminated=True, success=True, outcome=1.0, task_score=0.25)
    assert checked_step(scored) == scored
    accented = replace(SEEN, text="caf\u00e9 \u2603", state_key="x" * MOST_CHARACTERS)
    assert checked_observation(accented) == accented


def test_numbers_of_other_kinds_become_plain_ones() -> None:
    found = forced(
        STEP,
        observation=forced(SEEN, admissible=["look"], progress=np.float32(0.25)),
        valid=np.True_,
        success=np.False_,
        outcome=1,
        task_score=np.float64(0.5),
    )
    step = checked_step(found)
    assert step == Step(
        replace(SEEN, admissible=("look",), progress=0.25), True, False, False, 1.0, 0.5
    )
    flags = (step.valid, step.success, step.outcome, step.task_score, step.observation.progress)
    assert [type(value) for value in flags] == [bool, bool, float, float, float]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"text": None}, "text must be a text, got None"),
        ({"text": b"x"}, "text must be a text, got b'x'"),
        ({"text": "x" * (MOST_CHARACTERS + 1)}, "text has 1000001 characters, at most 1000000"),
        ({"text": "a\ud800"}, r"text has '\\ud800' at 1, which is no character"),
        ({"state_key": 3}, "state_key must be a text, got 3"),
        ({"admissible": "look"}, "admissible must be a tuple of texts, got 'look'"),
        ({"admissible": ("look", 3)}, "an admissible command must be a text, got 3"),
        ({"admissible": ("x" * MOST_CHARACTERS, "y")}, "admissible has 1000001 characters"),
        ({"admissible": ("",) * (MOST_COMMANDS + 1)}, "admissible has more than 100000 commands"),
        ({"admissible": Endless()}, "admissible has more than 100000 commands"),
        ({"text": Short("x" * (MOST_CHARACTERS + 1))}, "text has 1000001 characters"),
        ({"progress": float("nan")}, r"progress must be a number in \[0, 1\], got nan"),
        ({"progress": 1.01}, r"progress must be a number in \[0, 1\], got 1.01"),
        ({"progress": "1"}, r"progress must be a number in \[0, 1\], got '1'"),
    ],
)
def test_observations_that_are_refused(changes: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        checked_observation(forced(SEEN, **changes))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"observation": None}, "an Observation was due, got None"),
        ({"valid": 1}, "valid must be True or False, got 1"),
        ({"terminated": None}, "terminated must be True or False, got None"),
        ({"success": "yes"}, "success must be True or False, got 'yes'"),
        ({"outcome": float("inf")}, r"outcome must be a number in \[0, 1\], got inf"),
        ({"outcome": None}, r"outcome must be a number in \[0, 1\], got None"),
        ({"task_score": -0.5}, r"task_score must be a number in \[0, 1\], got -0.5"),
    ],
)
def test_steps_that_are_refused(changes: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        checked_step(forced(STEP, **changes))


@pytest.mark.parametrize("found", [None, b"bytes", ("text", 0.0), STEP.observation, 7])
def test_what_is_no_step_is_refused_in_few_words(found: object) -> None:
    with pytest.raises(ValueError, match="a Step was due, got") as raised:
        checked_step(found)
    assert len(str(raised.value)) < 200
