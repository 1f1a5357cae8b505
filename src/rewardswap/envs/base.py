"""The contract of an environment: text in, text out, deterministic in (task, actions)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from rewardswap.task import Task


@dataclass(frozen=True, slots=True)
class Observation:
    """What the agent is told, and what the library may know beside it."""

    text: str
    """What the agent reads."""
    admissible: tuple[str, ...]
    """The commands that the world accepts now, in its own order."""
    state_key: str
    """Key of the present state: equal keys are the same state of the task (no turn counter)."""
    progress: float
    """Rule-based potential in [0, 1]; 0 where the environment has no such rule."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one action led to."""

    observation: Observation
    valid: bool
    """Whether the world admitted the action; an inadmissible one still spends a turn."""
    terminated: bool
    """Whether the episode is over."""
    success: bool
    """The world's own `won`."""
    outcome: float
    """The outcome in [0, 1] if the episode ended here."""
    task_score: float | None = None
    """The benchmark's own score in [0, 1] if the episode ended here; none: it has only outcomes."""


@runtime_checkable
class Environment(Protocol):
    """One live world. It knows nothing of tokens or models."""

    def reset(self, task: Task) -> Observation:
        """Start `task` anew."""
        ...

    def step(self, action: str) -> Step:
        """Take one action."""
        ...

    def close(self) -> None:
        """Give everything back."""
        ...


@runtime_checkable
class PromptStyle(Protocol):
    """A way to word each turn as a prompt of its own, and to read the action from what was said."""

    @property
    def most_characters(self) -> int | None:
        """A longer prompt is worded again without its history; None: no prompt is too long."""
        ...

    def prompt(
        self, first: str, history: Sequence[tuple[str, str]], taken: int, now: Observation
    ) -> str:
        """What the agent reads in a turn.

        `first` is the text of the episode's first observation, `history` the latest (observation,
        action) pairs of the `taken` turns so far, oldest first; it may be empty.
        """
        ...

    def action(self, said: str) -> tuple[str, bool]:
        """The text to send to the world, and whether what was said is well formed."""
        ...


@runtime_checkable
class World(Protocol):
    """A named set of tasks and the maker of environments that play them."""

    instructions: str
    """The system text that tells an agent how this world is played; may be empty."""
    turn_limit: int
    """Most turns of an episode, in turns."""
    prompt_styles: Mapping[str, PromptStyle]
    """Ways to word a turn, by name; the chat of all turns is there beside them, see `rollout`."""

    def tasks(self, split: str) -> Sequence[Task]:
        """All tasks of a split, in a fixed order; raises ValueError naming the splits."""
        ...

    def remarks(self, split: str) -> Sequence[str]:
        """What a reader of results on a split must know, a sentence each: what was left out, a
        ceiling, an overlap; raises ValueError naming the splits."""
        ...

    def make(self) -> Environment:
        """A new environment that can play every task of this world."""
        ...
