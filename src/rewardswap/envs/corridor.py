"""A toy world for tests and first looks: walk along a corridor of rooms towards the light.

Ours, no benchmark. The observation names the side on which the light is, so a policy that reads
one word wins every game, and a tiny model learns it by RL in less than a minute on a CPU.
"""

import hashlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rewardswap.envs.base import Observation, PromptStyle, Step
from rewardswap.task import Task

MOVES = {"west": -1, "east": 1}
"""Command -> change of the room's number."""
HELD_OUT_SHARE = 4
"""One pair of rooms in so many is held out."""


@dataclass(frozen=True, slots=True)
class CorridorGame:
    """A start state: numbers of rooms, the westernmost is 1."""

    start: int
    light: int
    rooms: int

    @property
    def task(self) -> Task:
        """The task of this game; its family is `near` up to two steps, else `far`."""
        content = f"corridor {self.start} {self.light} {self.rooms}"
        family = "near" if abs(self.start - self.light) <= 2 else "far"
        return Task(hashlib.sha256(content.encode()).hexdigest()[:16], family)


class CorridorEnvironment:
    """One live walk."""

    def __init__(self, games: dict[str, CorridorGame]) -> None:
        self._games = games
        self._game: CorridorGame | None = None
        self._room = 0

    def reset(self, task: Task) -> Observation:
        """Start `task` anew; raises ValueError for a task of another world."""
        if task.id not in self._games:
            raise ValueError(f"unknown task {task.id!r}; take one of CorridorWorld.tasks")
        self._game = self._games[task.id]
        self._room = self._game.start
        return self._observe(self._game)

    def step(self, action: str) -> Step:
        """Walk one room; raises ValueError before `reset` and when the light is reached."""
        game = self._game
        if game is None or self._room == game.light:
            raise ValueError(f"no walk is under way; call reset(task) before step({action!r})")
        valid = action in self._admissible(game)
        if valid:
            self._room += MOVES[action]
        won = self._room == game.light
        return Step(self._observe(game), valid, terminated=won, success=won, outcome=float(won))

    def close(self) -> None:
        """Forget the walk."""
        self._game = None

    def _admissible(self, game: CorridorGame) -> tuple[str, ...]:
        return tuple(name for name, by in MOVES.items() if 1 <= self._room + by <= game.rooms)

    def _observe(self, game: CorridorGame) -> Observation:
        distance = game.light - self._room
        side = "here" if distance == 0 else "east" if distance > 0 else "west"
        return Observation(
            text=f"room {self._room} light {side}",
            admissible=self._admissible(game),
            state_key=f"{self._room} of {game.rooms}, light in {game.light}",
            progress=1 - abs(distance) / (game.rooms - 1),
        )


class CorridorWorld:
    """All walks of a corridor of `rooms` rooms, one pair of rooms in four held out both ways.

    Splits: `train`, `held_out`; both have as many walks to the west as to the east. Raises
    ValueError for fewer than 3 rooms or a turn limit below 1.
    """

    def __init__(self, rooms: int = 6, turn_limit: int = 8) -> None:
        if rooms < 3 or turn_limit < 1:
            raise ValueError(f"{rooms} rooms and {turn_limit} turns: at least 3 and 1 are needed")
        self.instructions = ""
        self.prompt_styles: Mapping[str, PromptStyle] = {}
        self.turn_limit = turn_limit
        pairs = itertools.combinations(range(1, rooms + 1), 2)
        eastward = sorted((CorridorGame(a, b, rooms) for a, b in pairs), key=lambda g: g.task.id)
        self._splits = {
            "train": [game for n, game in enumerate(eastward) if n % HELD_OUT_SHARE],
            "held_out": eastward[::HELD_OUT_SHARE],
        }
        for games in self._splits.values():
            games += [CorridorGame(game.light, game.start, rooms) for game in games]
        self._games = {g.task.id: g for games in self._splits.values() for g in games}

    def tasks(self, split: str) -> Sequence[Task]:
        """The games of a split: those to the east, then the same to the west."""
        if split not in self._splits:
            raise ValueError(f"unknown split {split!r}, this world has {sorted(self._splits)}")
        return [game.task for game in self._splits[split]]

    def remarks(self, split: str) -> list[str]:
        """Nothing to say; raises ValueError naming the splits."""
        self.tasks(split)
        return []

    def make(self) -> CorridorEnvironment:
        """A new environment for all games of this world."""
        return CorridorEnvironment(self._games)
