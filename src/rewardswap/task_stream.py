"""The order in which tasks are drawn: seeded epochs, one cursor per role."""

import hashlib
from collections.abc import Sequence

import numpy as np

from rewardswap.types import Task


def derived_seed(*parts: int | str) -> int:
    """A 63-bit seed that belongs to `parts` alone; the same in every process."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


class TaskStream:
    """Tasks in a new seeded order every epoch; each task once per epoch."""

    def __init__(self, tasks: Sequence[Task], seed: int) -> None:
        if not tasks:
            raise ValueError("there are no tasks to train on")
        self.tasks = tasks
        self.seed = seed
        self.cursor = 0
        self._epoch = -1
        self._order: list[int] = []

    def draw(self, count: int) -> list[Task]:
        """The next `count` tasks."""
        return [self._next() for _ in range(count)]

    def _next(self) -> Task:
        epoch, place = divmod(self.cursor, len(self.tasks))
        if epoch != self._epoch:
            stream = np.random.default_rng(derived_seed(self.seed, "epoch", epoch))
            self._order = stream.permutation(len(self.tasks)).tolist()
            self._epoch = epoch
        self.cursor += 1
        return self.tasks[self._order[place]]
