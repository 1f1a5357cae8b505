"""Gymnasium-style environments, each with something of its own, by name."""

import random
from collections.abc import Sequence
from typing import Any

from rewardswap.envs.corridor import CorridorWorld


class Count:
    """Say the seed's number of `up`, then `stop`; info tells nothing."""

    turn_limit = 6

    def reset(self, *, seed: int) -> Any:
        self.wanted = random.Random(seed).randint(0, 3)
        self.said = 0
        return self.text

    def step(self, action: str) -> tuple[Any, ...]:
        if action == "stop":
            return self.text, float(self.said == self.wanted), True, False, {}
        self.said += action == "up"
        return self.text, 0.0, False, False, {}

    @property
    def text(self) -> str:
        return f"{self.said} of {self.wanted}"


class Told(Count):
    """The same with everything that info may tell."""

    instructions = "Count."

    def reset(self, *, seed: int) -> Any:
        return super().reset(seed=seed), self.info

    def step(self, action: str) -> tuple[Any, ...]:
        text, reward, terminated, truncated, _ = super().step(action)
        info = {
            **self.info,
            "success": reward == 1,
            "score": 0.5,
            "valid": action in ("up", "stop"),
        }
        return text, 7.0, terminated, truncated, info

    @property
    def info(self) -> dict[str, Any]:
        progress = min(self.said, self.wanted) / 4
        key = f"{self.said}/{self.wanted}"
        return {"admissible": ["up", "stop"], "progress": progress, "state_key": key}


class Scripted:
    """Answers with what is given, whatever is done."""

    def __init__(self, opening: Any = "hello", steps: Sequence[Any] = (), **more: Any) -> None:
        self.opening, self.steps = opening, list(steps)
        self.closed = 0
        vars(self).update(more)

    def reset(self, *, seed: int) -> Any:
        self.left = iter(self.steps)
        return self.opening

    def step(self, action: str) -> Any:
        return next(self.left)

    def close(self) -> None:
        self.closed += 1


def broken() -> Any:
    """A maker that raises."""
    raise RuntimeError("no display")


world = CorridorWorld()
number = 7
