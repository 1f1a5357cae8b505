"""One environment without a fault, and one for each fault."""

import random
import time
from collections.abc import Iterator
from typing import Any

import numpy as np


class Sound:
    """Go up or down to the number that the seed draws, from 3, within the turns there are."""

    turn_limit = 8

    def reset(self, seed: int) -> Any:
        self.goal = random.Random(seed).choice([0, 1, 2, 4, 5, 6])
        self.at = 3
        return self.text(), self.info()

    def step(self, action: str) -> tuple[Any, ...]:
        self.at += {"up": 1, "down": -1}.get(action, 0)
        found = self.at == self.goal
        return self.text(), float(found), found, False, {**self.info(), "success": found}

    def text(self) -> str:
        return f"you are at {self.at} , the goal is {self.goal}"

    def info(self) -> dict[str, Any]:
        return {"admissible": ["up", "down"], "progress": 1 - abs(self.goal - self.at) / 10}


class Guess:
    """Hidden goals: every task begins with the same words, and that is no fault."""

    turn_limit = 3

    def reset(self, seed: int) -> Any:
        self.goal = random.Random(seed).randint(1, 4)
        return "guess", {"admissible": list("1234")}

    def step(self, action: str) -> tuple[Any, ...]:
        found = action == str(self.goal)
        return "guess", float(found), found, False, {"admissible": list("1234")}


class Clock(Sound):
    """Draws from the clock."""

    def text(self) -> str:
        return f"{super().text()} {time.monotonic_ns()}"


class Leaky(Sound):
    """Counts all steps of its life."""

    steps = 0

    def step(self, action: str) -> tuple[Any, ...]:
        self.steps += 1
        text, *rest = super().step(action)
        return f"{text} {self.steps}", *rest


class Shared(Sound):
    """Keeps where it is on the class."""

    @property
    def at(self) -> int:
        return Shared.place

    @at.setter
    def at(self, value: int) -> None:
        Shared.place = value


class Seedless(Sound):
    """Always the same task."""

    def reset(self, seed: int) -> Any:
        return super().reset(0)


class Global(Sound):
    """Seeds the stream of the whole program."""

    def reset(self, seed: int) -> Any:
        random.seed(seed + 1)
        np.random.seed(seed + 1)
        return super().reset(seed)


class Endless(Sound):
    """Never ends."""

    def step(self, action: str) -> tuple[Any, ...]:
        text, _, _, _, info = super().step(action)
        return text, 0.0, False, False, {**info, "success": False}


class Hopeless(Sound):
    """Ends, and is never won."""

    def step(self, action: str) -> tuple[Any, ...]:
        text, _, over, _, info = super().step(action)
        return text, 0.0, over, False, {**info, "success": False}


class Easy(Sound):
    """Always won."""

    def step(self, action: str) -> tuple[Any, ...]:
        text, _, _, _, info = super().step(action)
        return text, 1.0, True, False, {**info, "success": True}


class Early(Sound):
    """Says success and goes on."""

    def step(self, action: str) -> tuple[Any, ...]:
        text, reward, over, cut, info = super().step(action)
        return text, reward, over, cut, {**info, "success": True}


class Greedy(Sound):
    """Pays after the end."""

    over = False

    def reset(self, seed: int) -> Any:
        self.over = False
        return super().reset(seed)

    def step(self, action: str) -> tuple[Any, ...]:
        text, reward, over, cut, info = super().step(action)
        paid = 5.0 if self.over else reward
        self.over = self.over or over
        return text, paid, over, cut, info


class Rich(Sound):
    """Pays more than its range has, and says no progress."""

    def step(self, action: str) -> tuple[Any, ...]:
        text, _, over, cut, info = super().step(action)
        return text, 3.0, over, cut, info

    def info(self) -> dict[str, Any]:
        return {"admissible": ["up", "down"]}


class Refuses(Sound):
    """Lists a command that it does not admit."""

    def step(self, action: str) -> tuple[Any, ...]:
        text, reward, over, cut, info = super().step(action)
        return text, reward, over, cut, {**info, "valid": action in ("up", "down")}

    def info(self) -> dict[str, Any]:
        return {**super().info(), "admissible": ["up", "down", "fly"]}


class Brittle(Sound):
    """Knows no word but its own."""

    def step(self, action: str) -> tuple[Any, ...]:
        {"up": 1, "down": -1}[action]
        return super().step(action)


class Locked(Sound):
    """Cannot be begun for one seed in three."""

    def reset(self, seed: int) -> Any:
        if seed % 3 == 1:
            raise KeyError("no such level")
        return super().reset(seed)


class Wordless(Sound):
    """Says nothing at first."""

    def reset(self, seed: int) -> Any:
        super().reset(seed)
        return None


class Unseeded(Sound):
    """Knows no seed."""

    def reset(self) -> Any:  # type: ignore[override]
        return super().reset(0)


class Numbers(Sound):
    """Observes numbers."""

    def step(self, action: str) -> tuple[Any, ...]:
        return 7, *super().step(action)[1:]


class Raises(Sound):
    """Breaks in the second turn."""

    def reset(self, seed: int) -> Any:
        self.turn = 0
        return super().reset(seed)

    def step(self, action: str) -> tuple[Any, ...]:
        self.turn += 1
        if self.turn == 2:
            raise KeyError("door")
        return super().step(action)


class Four(Sound):
    """Answers with four parts."""

    def step(self, action: str) -> Any:
        text, reward, over, _, info = super().step(action)
        return text, reward, over, info


class Coloured(Sound):
    """Colours its words."""

    def text(self) -> str:
        return f"\x1b[31m{super().text()}"


class Silent(Sound):
    """Says nothing in between."""

    def step(self, action: str) -> tuple[Any, ...]:
        _, *rest = super().step(action)
        return "", *rest


class Counting(Sound):
    """Has the turn in its state key."""

    turn = 0

    def reset(self, seed: int) -> Any:
        self.turn = 0
        return super().reset(seed)

    def step(self, action: str) -> tuple[Any, ...]:
        self.turn += 1
        return super().step(action)

    def info(self) -> dict[str, Any]:
        return {**super().info(), "state_key": f"{self.at} in turn {self.turn}"}


class Misspelt(Sound):
    """Says success in other words."""

    def step(self, action: str) -> tuple[Any, ...]:
        text, reward, over, cut, info = super().step(action)
        return text, reward, over, cut, {**self.info(), "is_success": info["success"]}


class Cut(Sound):
    """Has a limit of its own."""

    def reset(self, seed: int) -> Any:
        self.turn = 0
        return super().reset(seed)

    def step(self, action: str) -> tuple[Any, ...]:
        self.turn += 1
        text, reward, over, _, info = super().step(action)
        return text, reward, over, self.turn == 3 and not over, info


class Stuck(Sound):
    """Cannot be closed once it has played."""

    played = False

    def step(self, action: str) -> tuple[Any, ...]:
        self.played = True
        return super().step(action)

    def close(self) -> None:
        if self.played:
            raise OSError("it hangs")


class Untold(Sound):
    """Tells no commands."""

    def info(self) -> dict[str, Any]:
        return {}


FAULTS: dict[str, type] = {
    "not deterministic": Clock,
    "leaks between resets": Leaky,
    "shares state": Shared,
    "ignores the seed": Seedless,
    "success before the end": Early,
    "refused command": Refuses,
    "odd action": Brittle,
    "text": Coloured,
    "close": Stuck,
}
"""What each fault is called, and who has it."""
REMARKS: dict[str, type] = {
    "random stream": Global,
    "no end": Endless,
    "never won": Hopeless,
    "always won": Easy,
    "reward after the end": Greedy,
    "state key": Counting,
    "unknown info": Misspelt,
    "truncates": Cut,
    "commands": Untold,
}
"""The same for remarks."""


def iterate() -> Iterator[int]:
    """No environment."""
    yield 1
