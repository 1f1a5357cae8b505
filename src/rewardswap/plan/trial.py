"""A world and an engine for one turn that no model plays: actions are given, outcomes made up."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

import numpy as np
from transformers import PreTrainedTokenizerBase

from rewardswap.envs.base import Environment, Observation, PromptStyle, Step, World
from rewardswap.plan.lengths import UNTOLD
from rewardswap.rollout.prompting import Context
from rewardswap.types import Task


class TrialWorld:
    """Episodes of another world that end after one turn; every second one is made a success.

    What the world answers is its own, but for outcome, score and progress: 1 in every second
    episode and 0 in the others, so that every group has both. The others run into the turn limit.
    """

    turn_limit = 1

    def __init__(self, world: World) -> None:
        self._world = world
        self.instructions = world.instructions
        self.prompt_styles: Mapping[str, PromptStyle] = world.prompt_styles
        self.openings: list[Observation] = []
        """First observation of every episode, in the order in which they began."""

    def tasks(self, split: str) -> Sequence[Task]:
        """Those of the world."""
        return self._world.tasks(split)

    def remarks(self, split: str) -> Sequence[str]:
        """Those of the world."""
        return self._world.remarks(split)

    def make(self) -> Environment:
        """An environment of the world, for one turn."""
        return _TrialEnvironment(self, self._world.make())


class _TrialEnvironment:
    def __init__(self, trial: TrialWorld, environment: Environment) -> None:
        self._trial, self._environment = trial, environment
        self._won = False

    def reset(self, task: Task) -> Observation:
        observation = replace(self._environment.reset(task), progress=0.0)
        self._won = len(self._trial.openings) % 2 == 1
        self._trial.openings.append(observation)
        return observation

    def step(self, action: str) -> Step:
        step, won = self._environment.step(action), self._won
        return Step(
            replace(step.observation, progress=float(won)),
            step.valid,
            terminated=won,
            success=won,
            outcome=float(won),
            task_score=None if step.task_score is None else float(won),
        )

    def close(self) -> None:
        self._environment.close()


@dataclass
class TrialActions:
    """A script that says an admissible action of each episode's first observation.

    Of the admissible actions it takes one, drawn by the episode's number, that the tokenizer
    brings back as it was, and any where it brings back none. Raises ValueError where the context
    finds no well-formed action in what was said.
    """

    world: TrialWorld
    context: Context
    tokenizer: PreTrainedTokenizerBase
    end_token_id: int
    spoken: Callable[[str], str]
    changed: int = 0
    """Actions that came back as another text."""

    def __post_init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def __call__(self, session: str, turn: int) -> Sequence[int]:
        number = self._numbers.setdefault(session, len(self._numbers))
        admissible = list(self.world.openings[number].admissible or UNTOLD)
        Random(number).shuffle(admissible)
        for action in admissible:
            ids = self._tokens(action)
            if self.context.read(np.array(ids, dtype=np.int64)).action == action:
                return ids
        self.changed += 1
        return self._tokens(admissible[0])

    def _tokens(self, action: str) -> list[int]:
        said = self.spoken(action)
        ids = [*self.tokenizer.encode(said, add_special_tokens=False), self.end_token_id]
        reading = self.context.read(np.array(ids, dtype=np.int64))
        if reading.error or not reading.well_formed:
            raise ValueError(
                f"no well-formed action is found in {said!r} when the tokenizer has it back "
                f"({reading.error or reading.action!r}); choose another env.action_format or "
                "env.prompt, or a model whose tokenizer knows its signs"
            )
        return ids
