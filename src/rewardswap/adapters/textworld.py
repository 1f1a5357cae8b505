"""TextWorld's games as a `World`; only this file imports textworld (extra `textworld`)."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rewardswap.checks import at_least
from rewardswap.envs.base import Observation, PromptStyle, Step
from rewardswap.task import Task

ENDINGS = (".z8", ".ulx")
"""Compiled games; the .json that TextWorld writes beside one tells commands and facts."""
TURN_LIMIT = 50
"""Most turns of an episode where nothing is said (as the field has it for ALFWorld)."""


class TextWorldEnvironment:
    """One live game; `reset` may switch to any other of its world."""

    def __init__(self, world: "TextWorldGames") -> None:
        self._world = world
        self._live: Any = None
        self._admissible: tuple[str, ...] = ()

    def reset(self, task: Task) -> Observation:
        """Start a game anew, without the banner in front of its task (ours).

        Raises ValueError for a task that the world has not listed.
        """
        path = self._world.path(task)
        self.close()
        self._live = self._world.start(path)
        state = self._live.reset()
        _, objective, rest = str(state.feedback).partition(state.objective or "\0")
        return self._observe(state, (objective + rest) or state.feedback, 0)

    def step(self, action: str) -> Step:
        """Take one action, its line breaks as spaces; ValueError before `reset` and after the end.

        Success is the game's own `won`, the score its points as a share of all.
        """
        if self._live is None:
            raise ValueError(f"no game is under way; call reset(task) before step({action!r})")
        command = " ".join(action.split())
        valid = command in self._admissible
        state, score, done = self._live.step(command)
        observation = self._observe(state, state.feedback, score)
        if done:
            self.close()
        won = bool(state.won)
        return Step(observation, valid, bool(done), won, float(won), observation.progress)

    def close(self) -> None:
        """End the game."""
        if self._live is not None:
            self._live.close()
        self._live = None

    def _observe(self, state: Any, text: str, score: float) -> Observation:
        self._admissible = tuple(state.admissible_commands or ())
        facts = "\n".join(sorted(map(str, state.facts or ())))
        most = state.max_score or 1
        return Observation(
            text=" ".join(text.split()),
            admissible=self._admissible,
            state_key=hashlib.sha256(facts.encode()).hexdigest()[:16] if facts else text,
            progress=min(1.0, max(0.0, score / most)),
        )


class TextWorldGames:
    """The compiled games of a folder: each folder in it is a split, by its name.

    A task's id is its file's content hash. Raises ValueError for a folder without splits, a split
    without games, or without textworld.
    """

    def __init__(self, folder: Path, turn_limit: int = TURN_LIMIT, instructions: str = "") -> None:
        at_least(1, turn_limit=turn_limit)
        self.folder = Path(folder)
        self.turn_limit = turn_limit
        self.instructions = instructions
        self.prompt_styles: Mapping[str, PromptStyle] = {}
        found = sorted(self.folder.iterdir()) if self.folder.is_dir() else []
        self.splits = [place.name for place in found if place.is_dir()]
        if not self.splits:
            raise ValueError(
                f"{folder} has no folder in it; put games into {folder}/train and {folder}/held_out"
            )
        _textworld()
        self._paths: dict[str, Path] = {}

    def tasks(self, split: str) -> list[Task]:
        """The games of a split in the order of their names; raises ValueError naming the splits."""
        if split not in self.splits:
            raise ValueError(f"unknown split {split!r}, this world has {self.splits}")
        games = [path for path in sorted((self.folder / split).iterdir()) if path.suffix in ENDINGS]
        if not games:
            raise ValueError(
                f"{self.folder / split} has no game ({', '.join(ENDINGS)}); `tw-make` makes some"
            )
        tasks = []
        for path in games:
            id = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
            self._paths[id] = path
            tasks.append(Task(id, "textworld"))
        return tasks

    def remarks(self, split: str) -> list[str]:
        """How many games tell no commands; raises ValueError naming the splits."""
        paths = [self.path(task) for task in self.tasks(split)]
        mute = sum(not path.with_suffix(".json").is_file() for path in paths)
        if not mute:
            return []
        return [
            f"{mute} of {len(paths)} games of {split} have no .json beside them: none of their "
            "actions counts as valid, and their states are told apart by text."
        ]

    def make(self) -> TextWorldEnvironment:
        """A new environment for all games of this world."""
        return TextWorldEnvironment(self)

    def path(self, task: Task) -> Path:
        """The file of a game; raises ValueError for a task that `tasks` has not listed."""
        if task.id not in self._paths:
            raise ValueError(f"unknown task {task.id!r}; list its split with tasks(split) first")
        return self._paths[task.id]

    def start(self, path: Path) -> Any:
        """TextWorld's own environment of a game file."""
        textworld = _textworld()
        wanted = textworld.EnvInfos(
            feedback=True,
            admissible_commands=True,
            objective=True,
            won=True,
            facts=True,
            max_score=True,
        )
        return textworld.start(str(path), wanted)


def _textworld() -> Any:
    try:
        import textworld
    except ImportError as error:
        raise ValueError(
            "TextWorld's games need textworld; pip install 'rewardswap[textworld]'"
        ) from error
    return textworld
