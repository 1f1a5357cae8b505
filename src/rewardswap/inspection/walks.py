"""Episodes by random actions, and the same actions once more."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from rewardswap.envs.base import Environment, Observation, Step, World
from rewardswap.envs.checked import checked_observation, checked_step
from rewardswap.task import Task

GUESSES = ("look", "help", "yes", "no", "1")
"""Actions where the environment tells no admissible ones and none are given (ours)."""


@dataclass
class Walk:
    """What one episode was answered, as far as it went."""

    task: Task
    opening: Observation | None = None
    actions: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    trouble: str = ""
    """What was raised, and where; empty where nothing was."""

    @property
    def observations(self) -> list[Observation]:
        """Everything that was observed, in order."""
        first = [] if self.opening is None else [self.opening]
        return [*first, *(step.observation for step in self.steps)]

    @property
    def cause(self) -> str:
        """What was raised, wherever it was, without the value that it was raised for."""
        return self.trouble.partition(" raised ")[2].partition(", got ")[0]

    @property
    def ended(self) -> bool:
        """Whether the environment ended it."""
        return bool(self.steps) and self.steps[-1].terminated

    def begin(self, environment: Environment) -> bool:
        """Reset; whether there was an observation."""
        try:
            self.opening = checked_observation(environment.reset(self.task))
        except Exception as error:  # it may be anybody's code
            self.trouble = f"reset of task {self.task.id!r} raised {_said(error)}"
        return not self.trouble

    def take(self, environment: Environment, action: str) -> bool:
        """Take an action; whether the episode goes on."""
        self.actions.append(action)
        try:
            self.steps.append(checked_step(environment.step(action)))
        except Exception as error:  # it may be anybody's code
            turn = len(self.actions)
            self.trouble = (
                f"step({action!r}) in turn {turn} of task {self.task.id!r} raised {_said(error)}"
            )
        return not self.trouble and not self.steps[-1].terminated


def wander(
    environment: Environment, task: Task, turns: int, seed: int, actions: Sequence[str] = ()
) -> Walk:
    """An episode of at most `turns` turns by random admissible actions, or by random `actions`."""
    walk, draw = Walk(task), Random(f"{seed} {task.id}")
    going = walk.begin(environment)
    while going and len(walk.steps) < turns:
        choices = actions or walk.observations[-1].admissible or GUESSES
        going = walk.take(environment, draw.choice(choices))
    return walk


def again(environment: Environment, walk: Walk) -> Walk:
    """The same task and actions in an environment."""
    copy = Walk(walk.task)
    going = copy.begin(environment)
    for action in walk.actions:
        going = going and copy.take(environment, action)
    return copy


@dataclass(frozen=True)
class Heard:
    """The words of a world, as far as random episodes came."""

    texts: tuple[str, ...]
    """Every observation once, with the instructions in front."""
    commands: tuple[str, ...]
    """Every admissible command once, and those that were given."""


def heard(world: World, *, tasks: int = 200, seed: int = 0, actions: Sequence[str] = ()) -> Heard:
    """What random episodes of the first training tasks say: the words for a small model (ours).

    Raises ValueError with the first thing that an environment raises.
    """
    environment = world.make()
    texts, commands = {world.instructions: None}, dict.fromkeys(actions)
    for task in world.tasks("train")[:tasks]:
        walk = wander(environment, task, world.turn_limit, seed, actions)
        if walk.trouble:
            raise ValueError(walk.trouble)
        for seen in walk.observations:
            texts[seen.text] = None
            commands.update(dict.fromkeys(seen.admissible))
    environment.close()
    return Heard(tuple(texts), tuple(commands))


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
