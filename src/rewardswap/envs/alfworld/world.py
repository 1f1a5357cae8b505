"""ALFWorld's text games as a `World`: the official files, or any games held in memory."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from rewardswap.envs.alfworld.engine import TextEngine
from rewardswap.envs.alfworld.game import Game, game_id
from rewardswap.envs.alfworld.oracle import solve
from rewardswap.envs.alfworld.pddl import WAY_OUT, UnsolvableGameError, read_game
from rewardswap.envs.alfworld.prompts import AlfworldPrompts
from rewardswap.envs.alfworld.wording import shorten
from rewardswap.envs.base import Observation, PromptStyle, Step
from rewardswap.envs.verl_agent import VERL_AGENT
from rewardswap.task import Task

Style = Literal["full", "short"]
"""How observations are worded: ALFWorld's own sentences, or the short form of `wording.py`."""

TRAIN = "train"

SPLITS = (TRAIN, "valid_seen", "valid_unseen", "valid_train")
"""The folders of the official game set."""

INSTRUCTIONS = """\
You act in a house by text commands, one per turn, to carry out the task given at the start.
Commands: look; inventory; go to R; open R; close R; take O from R; move O to R; examine R; \
examine O; use O; heat O with R; clean O with R; cool O with R; slice O with O.
R is a receptacle and O an object, as you see them written: take mug 1 from cabinet 2."""
"""System text for the full wording; with the short wording there is none."""


class AlfworldEnvironment:
    """One live game of a `GameWorld`; `reset` may switch to any other of its games."""

    def __init__(self, world: "GameWorld") -> None:
        self._world = world
        self._engine: TextEngine | None = None

    def reset(self, task: Task) -> Observation:
        """Start a task anew; raises ValueError for a task that the world has not listed."""
        game = self._world.game(task)
        if self._engine is None or self._engine.game is not game:
            self._engine = TextEngine(game)
        return self._observe(self._engine, self._engine.reset())

    def step(self, action: str) -> Step:
        """Take one action; raises ValueError before `reset` and after the game was won."""
        engine = self._engine
        if engine is None or engine.won:
            state = "not begun" if engine is None else "won already"
            raise ValueError(f"the game is {state}; call reset(task) before step({action!r})")
        valid = engine.is_admissible(action)
        observation = self._observe(engine, engine.step(action))
        won = engine.won
        return Step(observation, valid, terminated=won, success=won, outcome=float(won))

    def close(self) -> None:
        """Let go of the game."""
        self._engine = None

    def _observe(self, engine: TextEngine, text: str) -> Observation:
        return Observation(
            text=shorten(text) if self._world.style == "short" else text,
            admissible=tuple(engine.admissible),
            state_key=engine.state_key,
            progress=engine.progress,
        )


class GameWorld:
    """Games in memory, by split; a task's id is its game's content hash, its family the task type.

    Raises ValueError if a split lists a game twice, if a training game is in another split too, or
    if `turn_limit` is below one.
    """

    def __init__(
        self,
        splits: Mapping[str, Sequence[Game]],
        style: Style = "full",
        turn_limit: int = 50,
    ) -> None:
        if style not in ("full", "short"):
            raise ValueError(f"unknown style {style!r}, expected 'full' or 'short'")
        if turn_limit < 1:
            raise ValueError(f"turn_limit is {turn_limit}, expected at least 1 turn")
        self.style = style
        self.turn_limit = turn_limit
        self.instructions = INSTRUCTIONS if style == "full" else ""
        self.prompt_styles: Mapping[str, PromptStyle] = (
            {VERL_AGENT: AlfworldPrompts()} if style == "full" else {}
        )
        self._games: dict[str, dict[str, Game]] = {}
        for split, games in splits.items():
            self._add(split, games)

    def tasks(self, split: str) -> list[Task]:
        """Every game of a split once, in the order given; raises ValueError naming the splits."""
        if split not in self._games:
            raise ValueError(f"unknown split {split!r}, this world has {sorted(self._games)}")
        games = self._games[split]
        return [Task(id, game.goal.task_type) for id, game in games.items()]

    def remarks(self, split: str) -> list[str]:
        """What was left out of a split; raises ValueError naming the splits."""
        self.tasks(split)
        return []

    def make(self) -> AlfworldEnvironment:
        """A new environment for all games of this world."""
        return AlfworldEnvironment(self)

    def game(self, task: Task) -> Game:
        """The game of a task; raises ValueError for a task that `tasks` has not listed."""
        for games in self._games.values():
            if task.id in games:
                return games[task.id]
        raise ValueError(
            f"unknown task {task.id!r} ({task.family}); list its split with tasks(split) first, "
            f"listed so far: {sorted(self._games)}"
        )

    def solution(self, task: Task) -> list[str]:
        """A shortest list of commands that wins the game; raises ValueError for one without."""
        return solve(self.game(task))

    def _add(self, split: str, games: Sequence[Game]) -> None:
        named: dict[str, Game] = {}
        for game in games:
            id = game_id(game)
            if id in named:
                raise ValueError(f"split {split!r} has game {id} ({game.task}) twice")
            named[id] = game
        for other, seen in self._games.items():
            shared = named.keys() & seen.keys()
            if TRAIN in (split, other) and shared:
                raise ValueError(
                    f"splits {split!r} and {other!r} share {len(shared)} games, such as "
                    f"{min(shared)}; games to train on must not be held out"
                )
        self._games[split] = named


class AlfworldWorld(GameWorld):
    """The official game set, as `alfworld-download` lays it out: <split>/*/trial_*/game.tw-pddl.

    Only the game files are needed. Tasks with a movable receptacle or sliced objects and games
    marked unsolvable are left out, as ALFWorld's own loader does, and counted in `left_out`. A
    split is read when it is first listed (in sorted path order, kept in memory).
    """

    def __init__(self, games: Path, style: Style = "full", turn_limit: int = 50) -> None:
        super().__init__({}, style, turn_limit)
        inner = games / "json_2.1.1"
        self.folder = inner if inner.is_dir() else games
        self.left_out: dict[str, Counter[str]] = {}
        """Split -> reason -> number of game files that were left out."""
        if not self.folder.is_dir():
            raise ValueError(f"games folder {games} does not exist; {_fetch()}")

    def tasks(self, split: str) -> list[Task]:
        """Every game of a split once, in sorted path order.

        Raises ValueError naming the path and the way out: unknown split, a folder that is missing
        or has no game, a broken file.
        """
        if split not in SPLITS:
            raise ValueError(f"unknown split {split!r}, ALFWorld has {list(SPLITS)}")
        if split not in self._games:
            self._add(split, self._read(split))
        return super().tasks(split)

    def remarks(self, split: str) -> list[str]:
        """How many game files of a split were left out, and why."""
        self.tasks(split)
        counts = self.left_out[split].items()
        return [f"{split}: {count} games left out ({reason})" for reason, count in counts]

    def _read(self, split: str) -> list[Game]:
        folder = self.folder / split
        if not folder.is_dir():
            raise ValueError(f"split {split!r} has no folder {folder}; {_fetch()}")
        left_out: Counter[str] = Counter()
        games = []
        paths = {path.relative_to(folder).as_posix(): path for path in folder.glob("*/*/*.tw-pddl")}
        for name in sorted(paths):
            if "movable" in name or "Sliced" in name:
                left_out["movable receptacle or sliced object"] += 1
                continue
            try:
                games.append(read_game(paths[name]))
            except UnsolvableGameError:
                left_out["marked unsolvable"] += 1
        self.left_out[split] = left_out
        if not games:
            raise ValueError(f"folder {folder} has no game */trial_*/game.tw-pddl; {_fetch()}")
        return games


def _fetch() -> str:
    return f"{WAY_OUT} and give the folder $ALFWORLD_DATA/json_2.1.1"
