"""What the supervised stage must know of a world: its words, demonstrations and an exam."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from transformers import PreTrainedTokenizerFast

from rewardswap.envs.base import World
from rewardswap.sft.rows import Episode
from rewardswap.types import Task


@runtime_checkable
class Lessons(Protocol):
    """How a base agent of one world is taught; a frozen dataclass of settings."""

    def tokenizer(self) -> PreTrainedTokenizerFast:
        """The world's words."""
        ...

    def demonstrations(
        self, seed: int, step: int, count: int, tokenizer: PreTrainedTokenizerFast
    ) -> list[Episode]:
        """Fresh demonstrations of one step; they depend on the arguments alone."""
        ...

    def exam(self, seed: int, tasks: int) -> tuple[World, Sequence[Task]]:
        """A world that no demonstration is from, and so many tasks of it."""
        ...
