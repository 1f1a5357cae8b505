"""Environments of one world by number; whatever one of them does costs its own episode only."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from rewardswap.envs.base import Environment, Observation, Step, World
from rewardswap.envs.checked import checked_observation, checked_step
from rewardswap.task import Task

MOST_OF_A_CAUSE = 500
"""Most characters of a cause; an exception may hold a whole page."""

Answer = TypeVar("Answer", Observation, Step)


@dataclass(frozen=True, slots=True)
class Broken:
    """In place of an answer: the environment broke, and its episode is over."""

    cause: str


class Host:
    """Holds environments, each made when its number is first used, and checks what they return.

    Every exception is a broken environment, which is closed and forgotten, but for those in
    `passed`: in the process that the user can interrupt, a KeyboardInterrupt is the user's.
    """

    def __init__(
        self, world: World, passed: tuple[type[BaseException], ...] = (KeyboardInterrupt,)
    ) -> None:
        self._world, self._passed = world, passed
        self._live: dict[int, Environment] = {}

    def reset(self, number: int, task: Task) -> Observation | Broken:
        """Start `task` in an environment, made first where there is none of this number."""
        return self._guarded(number, lambda live: checked_observation(live.reset(task)))

    def step(self, number: int, action: str) -> Step | Broken:
        """Take one action in an environment."""
        return self._guarded(number, lambda live: checked_step(live.step(action)))

    def close(self) -> list[str]:
        """Close and forget every environment; what those said that broke in it."""
        causes = [self._close(environment) for environment in self._live.values()]
        self._live = {}
        return [cause for cause in causes if cause]

    def _guarded(self, number: int, act: Callable[[Environment], Answer]) -> Answer | Broken:
        try:
            if number not in self._live:
                self._live[number] = self._world.make()
            return act(self._live[number])
        except self._passed:
            raise
        except BaseException as error:  # whatever an environment raises costs its episode
            cause = cause_of(error, self._passed)
        environment = self._live.pop(number, None)
        second = "" if environment is None else self._close(environment)
        return Broken(f"{cause}; in close: {second}" if second else cause)

    def _close(self, environment: Environment) -> str:
        """What it raised in closing, or nothing."""
        try:
            environment.close()
        except self._passed:
            raise
        except BaseException as error:  # it is given up anyway
            return cause_of(error, self._passed)
        return ""


def cause_of(error: BaseException, passed: tuple[type[BaseException], ...] = ()) -> str:
    """Kind and text of an exception, cut to `MOST_OF_A_CAUSE` characters.

    Raises what is in `passed` where telling its text does.
    """
    try:
        text = str(error)
    except passed:
        raise
    except BaseException as second:  # an exception may break in telling what it is
        text = f"(its text raised {type(second).__name__})"
    cause = f"{type(error).__name__}: {text}"
    if len(cause) > MOST_OF_A_CAUSE:
        cause = f"{cause[:MOST_OF_A_CAUSE]}..."
    return cause.encode(errors="backslashreplace").decode()
