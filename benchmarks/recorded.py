"""Episodes of exactly so many turns, recorded from the generated worlds, and a world of them.

An expert plays and strays; an action that would end the episode early is taken back and another
one taken. The recorded world tells what was recorded, whatever is said to it, so that any model
plays episodes of the same length, at no cost.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal
from zlib import crc32

import numpy as np
from transformers import PreTrainedTokenizerBase

from rewardswap.envs.alfworld.expert import Expert, Noise
from rewardswap.envs.alfworld.generator import fresh_games
from rewardswap.envs.alfworld.world import GameWorld
from rewardswap.envs.base import Observation, PromptStyle, Step, World
from rewardswap.envs.webshop.shopper import Habits, Shopper
from rewardswap.envs.webshop.synthetic import synthetic_catalogue
from rewardswap.envs.webshop.world import ShopEnvironment, ShopWorld
from rewardswap.rollout.context import ChatContext
from rewardswap.types import FloatArray, Task, Trajectory, Turn

Wording = Literal["full", "short"]
Choose = Callable[[str, Observation], str]
"""The next action, from the previous one (none yet: empty) and what it led to."""

STRAYING = 0.5
"""Share of turns with a random admissible action."""


@dataclass(frozen=True)
class Recording:
    """One episode: each action answers the observation of its place; one observation more."""

    task: Task
    observations: tuple[str, ...]
    actions: tuple[str, ...]


def alfworld(count: int, turns: int, wording: Wording) -> "RecordedWorld":
    """Episodes in freshly generated rooms."""
    games = {"train": fresh_games(0, count)}
    played, told = (GameWorld(games, style=style) for style in ("short", wording))  # type: ignore
    recordings = []
    for number, task in enumerate(played.tasks("train")):
        random = Random(number)
        expert = Expert(played.game(task).goal, random, Noise(STRAYING, inadmissible=0))

        def choose(before: str, now: Observation, expert: Expert = expert) -> str:
            if before:
                expert.see(before, now.text)
            else:
                expert.begin(now.text)
            return expert.act(now.admissible)

        actions = wander(played, task, choose, turns, random)
        recordings.append(record(told, task, actions))
    return RecordedWorld(recordings, told.instructions)


def webshop(count: int, turns: int, wording: Wording) -> "RecordedWorld":
    """Episodes in a generated shop of 1,000 products."""
    catalogue = synthetic_catalogue(0, 1000)
    told = ShopWorld(catalogue, mode="short" if wording == "short" else "text_rich")
    recordings = []
    for number, task in enumerate(told.tasks("train")[:count]):
        random = Random(number)
        goal = catalogue.goals[told.goal_number(task)]
        shopper = Shopper(catalogue, goal, random, Habits(STRAYING, inadmissible=0))
        shop = told.make()

        def choose(
            _: str, now: Observation, shopper: Shopper = shopper, shop: ShopEnvironment = shop
        ) -> str:
            return shopper.act(shop.place, now.admissible)

        actions = wander(told, task, choose, turns, random, shop)
        recordings.append(record(told, task, actions))
    return RecordedWorld(recordings, told.instructions)


WORLDS = {"ALFWorld": alfworld, "WebShop": webshop}


def wander(
    world: World,
    task: Task,
    choose: Choose,
    turns: int,
    random: Random,
    environment: ShopEnvironment | None = None,
) -> list[str]:
    """Actions of exactly `turns` turns that do not end the episode."""
    live = environment or world.make()
    now, actions = live.reset(task), list[str]()
    while len(actions) < turns:
        action = choose(actions[-1] if actions else "", now)
        step = live.step(action)
        while step.terminated:
            live.reset(task)
            for earlier in actions:
                live.step(earlier)
            action = random.choice(now.admissible)
            step = live.step(action)
        actions.append(action)
        now = step.observation
    return actions


def record(world: World, task: Task, actions: Sequence[str]) -> Recording:
    """What a world says to these actions."""
    environment = world.make()
    observations = [environment.reset(task).text]
    observations += [environment.step(action).observation.text for action in actions]
    return Recording(task, tuple(observations), tuple(actions))


class RecordedEnvironment:
    """Tells the recorded observations in order; the outcome is drawn from what was said."""

    def __init__(self, recordings: Mapping[str, Recording]) -> None:
        self._recordings = recordings
        self._said: list[str] = []

    def reset(self, task: Task) -> Observation:
        """Start `task` anew."""
        self._recording, self._said = self._recordings[task.id], []
        return self._observe()

    def step(self, action: str) -> Step:
        """The next recorded observation; outcomes of siblings differ, so that all of them count."""
        self._said.append(action)
        over = len(self._said) == len(self._recording.actions)
        outcome = crc32("\n".join(self._said).encode()) / 2**32 if over else 0.0
        return Step(self._observe(), True, terminated=over, success=False, outcome=outcome)

    def close(self) -> None:
        """Nothing to give back."""

    def _observe(self) -> Observation:
        turn = len(self._said)
        return Observation(self._recording.observations[turn], (), str(turn), 0.0)


class RecordedWorld:
    """Recorded episodes of one world, all in the split `train`."""

    def __init__(self, recordings: Sequence[Recording], instructions: str) -> None:
        self.recordings = {recording.task.id: recording for recording in recordings}
        self.instructions = instructions
        self.turn_limit = max(len(recording.actions) for recording in recordings)
        self.prompt_styles: Mapping[str, PromptStyle] = {}

    def tasks(self, split: str) -> list[Task]:
        """Every recorded task once."""
        return [recording.task for recording in self.recordings.values()]

    def remarks(self, split: str) -> list[str]:
        """Nothing to say."""
        return []

    def make(self) -> RecordedEnvironment:
        """A new environment for all recordings."""
        return RecordedEnvironment(self.recordings)


def trajectory(
    recording: Recording, index: int, context: ChatContext, tokenizer: PreTrainedTokenizerBase
) -> Trajectory:
    """The recorded episode as if it had been sampled; outcomes are spread over [0, 1]."""
    conversation = context.conversation(Observation(recording.observations[0], (), "", 0.0))
    turns: list[Turn] = []
    for action, heard in zip(recording.actions, recording.observations[1:], strict=True):
        said = [*tokenizer.encode(action, add_special_tokens=False), tokenizer.eos_token_id]
        ids = np.array(said, dtype=np.int64)
        logprobs: FloatArray = np.full(len(ids), -1.0, dtype=np.float32)
        before, extends = conversation.context_ids, conversation.extends
        told = recording.observations[len(turns)]
        turns.append(
            Turn(told, before, extends, ids, logprobs, action, True, False, 0.0, str(len(turns)))
        )
        conversation.reply(ids, action, Observation(heard, (), "", 0.0))
    return Trajectory(
        task=recording.task,
        index=index,
        turns=tuple(turns),
        final_observation=heard,
        final_context_ids=conversation.context_ids,
        outcome=(0.37 * index) % 1,
        success=False,
        stop="turn_limit",
        policy_version=0,
        task_score=0.0,
    )
