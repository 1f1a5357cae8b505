"""Episodes whose actions are text: a person's, or a solution that the world knows."""

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from rewardswap.envs.base import Environment, Observation, Step, World
from rewardswap.envs.checked import checked_observation, checked_step
from rewardswap.play.board import REFUSED, Board, Ending
from rewardswap.task import Task

Past = Sequence[tuple[Observation, str]]
"""The turns so far: what was told, and what was done."""
Act = Callable[[Past, Observation], str | None]
"""The next action; none: the player leaves."""


@runtime_checkable
class Solved(Protocol):
    """A world that knows how its tasks are solved."""

    def solution(self, task: Task) -> Sequence[str]:
        """Actions that reach the goal of a task; raises ValueError where none do."""
        ...


class Oracle:
    """Plays the world's own solution; raises ValueError for a world or a task without one."""

    def __init__(self, world: World, task: Task, board: Board) -> None:
        if not isinstance(world, Solved):
            raise ValueError(
                "this environment has no oracle (a world with a method `solution(task)` has one); "
                "play --by person or --by MODEL"
            )
        self._actions, self._board = world.solution(task), board

    def act(self, past: Past, now: Observation) -> str | None:
        """The next action of the solution; none behind its last."""
        if len(past) == len(self._actions):
            return None
        action = self._actions[len(past)]
        self._board.acted(len(past), action)
        return action


def play_episode(environment: Environment, task: Task, act: Act, board: Board) -> Ending | None:
    """Play a task until the world or the turn cap ends it; none where the player left.

    Raises ValueError for an environment that breaks its contract.
    """
    past: list[tuple[Observation, str]] = []
    now, invalid = checked_observation(environment.reset(task)), 0
    board.say(now.text)
    while True:
        try:
            action = act(past, now)
        except KeyboardInterrupt:
            board.left(len(past))
            raise
        if action is None:
            board.left(len(past))
            return None
        step = checked_step(environment.step(action))
        past.append((now, action))
        now, invalid = step.observation, invalid + (not step.valid)
        board.say(now.text)
        if not step.valid:
            board.say(REFUSED)
        if step.terminated or len(past) == board.limit:
            return _ending(step, len(past), invalid)


def _ending(step: Step, turns: int, invalid: int) -> Ending:
    if step.terminated:
        return Ending(step.success, step.outcome, step.task_score, turns, invalid)
    return Ending(False, 0.0, None, turns, invalid, "the turn cap")
