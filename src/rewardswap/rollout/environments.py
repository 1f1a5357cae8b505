"""The live environments of a rollout behind one contract, and those that live in this process."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from rewardswap.envs.base import Environment, Observation, PromptStyle, Step, World
from rewardswap.rollout.host import Answer, Broken, Host
from rewardswap.task import Task

ENVIRONMENT_COUNTERS = ("failed_closes", "worker_restarts", "step_deadlines", "replayed_steps")
"""What is counted of environments beside their steps and failures."""


@runtime_checkable
class Environments(Protocol):
    """Environments of one world, one for each live episode, driven many at a time.

    What an episode is answered depends on its task and its actions alone. Every answer is checked
    (`envs.checked`). A broken episode is forgotten; the others do not notice.
    """

    def reset(self, tasks: Mapping[int, Task]) -> dict[int, Observation | Broken]:
        """Begin episodes, by number; the answers in the same order."""
        ...

    def step(self, actions: Mapping[int, str]) -> dict[int, Step | Broken]:
        """Take one action in each of several episodes; the answers in the same order."""
        ...

    def release(self, episode: int) -> None:
        """An episode is over; its environment may play another."""
        ...

    def end(self) -> Counter[str]:
        """Close every environment, also in the middle of a step; how often each of
        `ENVIRONMENT_COUNTERS` happened since the last end."""
        ...

    def close(self) -> None:
        """Give everything back; not used again."""
        ...


class Places:
    """Numbers of environments: each episode takes one that is free, or the next new one."""

    def __init__(self) -> None:
        self._of: dict[int, int] = {}
        self._free: list[int] = []
        self._made = 0

    def __getitem__(self, episode: int) -> int:
        return self._of[episode]

    def __len__(self) -> int:
        return len(self._of)

    def take(self, episode: int) -> int:
        """A number for an episode."""
        if not self._free:
            self._free.append(self._made)
            self._made += 1
        self._of[episode] = self._free.pop()
        return self._of[episode]

    def release(self, episode: int) -> None:
        """Its number may be taken again."""
        self._free.append(self._of.pop(episode))

    def drop(self, episode: int) -> None:
        """Its number is not taken again: the environment broke."""
        del self._of[episode]


class LocalEnvironments:
    """Environments in this process, stepped one after another.

    Nothing here survives an environment that sleeps for ever or ends the process: that takes
    worker processes (`rollout.workers`).
    """

    def __init__(self, world: World) -> None:
        self._host = Host(world)
        self._places = Places()

    def reset(self, tasks: Mapping[int, Task]) -> dict[int, Observation | Broken]:
        """Begin episodes, in order."""
        return {
            episode: self._kept(episode, self._host.reset(self._places.take(episode), task))
            for episode, task in tasks.items()
        }

    def step(self, actions: Mapping[int, str]) -> dict[int, Step | Broken]:
        """Take the actions, in order."""
        return {
            episode: self._kept(episode, self._host.step(self._places[episode], action))
            for episode, action in actions.items()
        }

    def release(self, episode: int) -> None:
        """Its environment may play another episode."""
        self._places.release(episode)

    def end(self) -> Counter[str]:
        """Close every environment."""
        self._places = Places()
        return Counter(failed_closes=len(self._host.close()))

    def close(self) -> None:
        """Close every environment."""
        self.end()

    def _kept(self, episode: int, answer: Answer | Broken) -> Answer | Broken:
        if isinstance(answer, Broken):
            self._places.drop(episode)
        return answer


class ListedWorld:
    """A world that notes which splits were listed: a world in another process lists them too.

    Official ALFWorld games, for one, are read when their split is first listed.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self.instructions = world.instructions
        self.turn_limit = world.turn_limit
        self.prompt_styles: Mapping[str, PromptStyle] = world.prompt_styles
        self.listed: list[str] = []
        """Names of the splits, in the order in which they were first listed."""

    def tasks(self, split: str) -> Sequence[Task]:
        """Those of the world; raises ValueError as it does."""
        tasks = self._world.tasks(split)
        if split not in self.listed:
            self.listed.append(split)
        return tasks

    def remarks(self, split: str) -> Sequence[str]:
        """Those of the world; raises ValueError as it does."""
        return self._world.remarks(split)

    def make(self) -> Environment:
        """An environment of the world, in this process."""
        return self._world.make()
