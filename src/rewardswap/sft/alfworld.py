"""Lessons in the generated text world: noisy experts in fresh games."""

from dataclasses import dataclass, field
from random import Random

from transformers import PreTrainedTokenizerFast

from rewardswap.envs.alfworld.expert import Expert, Noise
from rewardswap.envs.alfworld.generator import GeneratedWorld, RoomSize, generate_game
from rewardswap.envs.alfworld.world import GameWorld
from rewardswap.envs.base import Observation
from rewardswap.models.small_agent import build_tokenizer
from rewardswap.sft.rows import Episode, record_episode, stream_seed
from rewardswap.types import Task


@dataclass(frozen=True)
class AlfworldLessons:
    """How demonstrations are drawn; noise is what keeps the agent in the middle."""

    highest_noise: float = 0.5
    """Each episode's share of random actions is uniform between 0 and this."""
    inadmissible: float = 1 / 3
    """Share of the random actions that are impossible."""
    forgetting: float = 0.7
    """Share of episodes that first place the object unprocessed."""
    size: RoomSize = field(default_factory=RoomSize)
    """How large the rooms are."""
    turn_limit: int = 20
    """Most turns of a demonstration and of an evaluated episode."""

    def tokenizer(self) -> PreTrainedTokenizerFast:
        """The words of the text world."""
        return build_tokenizer()

    def demonstrations(
        self, seed: int, step: int, count: int, tokenizer: PreTrainedTokenizerFast
    ) -> list[Episode]:
        """Each in a fresh game."""
        seeds = [stream_seed(seed, "demonstration", step, number) for number in range(count)]
        return [self.record(seed, tokenizer) for seed in seeds]

    def exam(self, seed: int, tasks: int) -> tuple[GeneratedWorld, list[Task]]:
        """Freshly generated games."""
        world = GeneratedWorld(
            stream_seed(seed, "evaluation"),
            train=1,
            held_out=tasks,
            size=self.size,
            turn_limit=self.turn_limit,
        )
        return world, world.tasks("held_out")

    def record(self, seed: int, tokenizer: PreTrainedTokenizerFast) -> Episode:
        """Play one fresh game with a noisy expert and write it down as the chat template would."""
        random = Random(seed)
        noise = Noise(
            rate=random.uniform(0.0, self.highest_noise),
            inadmissible=self.inadmissible,
            forgets_process=random.random() < self.forgetting,
        )
        game = generate_game(random.getrandbits(63), self.size)
        world = GameWorld({"stream": [game]}, style="short", turn_limit=self.turn_limit)
        expert = Expert(game.goal, random, noise)
        said: list[str] = []

        def act(observation: Observation) -> str:
            if said:
                expert.see(said[-1], observation.text)
            else:
                expert.begin(observation.text)
            said.append(expert.act(observation.admissible))
            return said[-1]

        task = world.tasks("stream")[0]
        return record_episode(world.make(), task, act, self.turn_limit, tokenizer)
