"""Corridors that a worker process makes for itself: it imports this file, and so no torch."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from rewardswap.envs.base import Observation, Step, World
from rewardswap.envs.corridor import CorridorEnvironment, CorridorWorld
from rewardswap.task import Task


def ends_the_process() -> World:
    """A recipe that its process does not survive."""
    os._exit(9)


def refuses() -> World:
    """A recipe that raises."""
    raise ValueError("no games found; get them")


class Forgetful(CorridorWorld):
    """Plays only what was listed, as official games are read."""

    def __init__(self) -> None:
        super().__init__()
        self._listed: set[str] = set()

    def tasks(self, split: str) -> Sequence[Task]:
        tasks = super().tasks(split)
        self._listed |= {task.id for task in tasks}
        return tasks

    def make(self) -> CorridorEnvironment:
        games = {id: game for id, game in self._games.items() if id in self._listed}
        return CorridorEnvironment(games)


class Chatty(CorridorWorld):
    """Prints and reads what is not its own."""

    def make(self) -> CorridorEnvironment:
        print("hello from the corridor", flush=True)
        assert sys.stdin.read() == ""
        return super().make()


class Parental(CorridorWorld):
    """Starts a process of its own, says its number, and takes no step."""

    def make(self) -> CorridorEnvironment:
        return ParentalWalk(self._games)


class ParentalWalk(CorridorEnvironment):
    def reset(self, task: Task) -> Observation:
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        return replace(super().reset(task), text=str(child.pid))

    def step(self, action: str) -> Step:
        time.sleep(600)
        raise AssertionError(action)


class WithoutTorch(CorridorWorld):
    """Plays only where nobody imported torch."""

    def make(self) -> CorridorEnvironment:
        assert "torch" not in sys.modules
        return super().make()


class Splitting(CorridorWorld):
    """Leaves a copy of its process in the first step of every episode.

    `kept`: the copy sleeps, and its parent ends; `signal`: that ends by a signal that has no name;
    `both`: both go on; `writes`: no copy, but a line that nobody asked for into every open file.
    """

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how

    def make(self) -> CorridorEnvironment:
        walk = SplittingWalk(self._games)
        walk.how = self.how
        return walk


class SplittingWalk(CorridorEnvironment):
    how = ""

    def step(self, action: str) -> Step:
        if self.how == "writes":
            for number in range(3, 32):
                with suppress(OSError):
                    os.write(number, b"1 hello\n")
        if self.how == "signal":
            os.kill(os.getpid(), signal.SIGRTMIN + 6)
        if self.how in ("kept", "both") and os.fork() == 0 and self.how == "kept":
            time.sleep(600)
        elif self.how == "kept":
            os._exit(3)
        return super().step(action)
