"""A harvest at several temperatures: an explorer without any reward (a baseline)."""

import math
from collections import Counter
from dataclasses import dataclass


@dataclass(frozen=True)
class TemperatureLadder:
    """Whole groups of the harvest at each temperature, in equal shares."""

    temperatures: tuple[float, ...] = (0.7, 1.0, 1.3)
    """Sampling temperatures, each of at least one task of every harvest (ours)."""

    def __post_init__(self) -> None:
        if len(set(self.temperatures)) < 2 or len(set(self.temperatures)) < len(self.temperatures):
            raise ValueError(
                f"a ladder needs at least two temperatures, each once, got {self.temperatures}"
            )
        for temperature in self.temperatures:
            if not (0 < temperature < math.inf):
                raise ValueError(
                    f"temperature {temperature} of the ladder must be above 0 and finite: "
                    "log-probs are those of the distribution that is sampled"
                )

    def shares(self, tasks: int, loop: int) -> list[tuple[float, int]]:
        """How many of `tasks` tasks are played at each temperature in a loop, counted from 0.

        Tasks are dealt out in turn, where the loop before stopped: after any number of loops of
        the same size the shares differ by at most one task. Raises ValueError for fewer tasks than
        temperatures.
        """
        steps = len(self.temperatures)
        if tasks < steps:
            raise ValueError(
                f"a harvest of {tasks} tasks cannot be played at {steps} temperatures; "
                "set batch.tasks larger or name fewer temperatures"
            )
        dealt = Counter((loop * tasks + number) % steps for number in range(tasks))
        return [(self.temperatures[step], dealt[step]) for step in range(steps)]
