"""Lessons in the generated shop: shoppers with bad habits in shops of their own."""

from dataclasses import dataclass
from functools import lru_cache
from random import Random

from transformers import PreTrainedTokenizerFast

from rewardswap.envs.base import Observation
from rewardswap.envs.webshop.shopper import Habits, Shopper
from rewardswap.envs.webshop.synthetic import synthetic_catalogue
from rewardswap.envs.webshop.world import ShopWorld
from rewardswap.models.shop_agent import build_tokenizer
from rewardswap.sft.rows import Episode, record_episode, stream_seed
from rewardswap.types import Task

DRILLED = 24
"""Tokens that a drill repeats."""


@dataclass(frozen=True)
class WebShopLessons:
    """How demonstrations are drawn; bad habits are what keeps the agent in the middle."""

    highest_noise: float = 0.3
    """Each episode's share of random actions is uniform between 0 and this."""
    inadmissible: float = 1 / 3
    """Share of the random actions that no page offers."""
    forgetting: float = 0.4
    """Share of episodes in which one option is never chosen."""
    overspending: float = 0.4
    """Share of episodes in which the price is no matter."""
    skipping: float = 0.5
    """Share of episodes in which no features are read."""
    vagueness: float = 0.2
    """Share of episodes that search for the kind of product alone."""
    products: int = 1000
    """Size of a shop, in products."""
    steps_per_shop: int = 40
    """Optimizer steps after which a fresh shop opens."""
    drill_steps: int = 300
    """Optimizer steps at the start that repeat random words, so that copying is learned first."""
    turn_limit: int = 15
    """Most turns of a demonstration and of an evaluated episode."""

    def tokenizer(self) -> PreTrainedTokenizerFast:
        """The words of the generated shop."""
        return build_tokenizer()

    def demonstrations(
        self, seed: int, step: int, count: int, tokenizer: PreTrainedTokenizerFast
    ) -> list[Episode]:
        """Each after a goal drawn at random from the shop of that step; drills before them."""
        if step < self.drill_steps:
            seeds = [stream_seed(seed, "drill", step, number) for number in range(2 * count)]
            return [drill(seed, len(tokenizer)) for seed in seeds]
        shop = stream_seed(seed, "shop", step // self.steps_per_shop)
        world = _world(shop, self.products, self.turn_limit)
        seeds = [stream_seed(seed, "demonstration", step, number) for number in range(count)]
        return [self.record(seed, world, tokenizer) for seed in seeds]

    def exam(self, seed: int, tasks: int) -> tuple[ShopWorld, list[Task]]:
        """Goals of a shop that no demonstration is from."""
        world = _world(stream_seed(seed, "evaluation"), self.products, self.turn_limit)
        return world, world.tasks("train")[:tasks]

    def record(self, seed: int, world: ShopWorld, tokenizer: PreTrainedTokenizerFast) -> Episode:
        """Shop for one goal and write it down as the chat template would."""
        random = Random(seed)
        habits = Habits(
            noise=random.uniform(0.0, self.highest_noise),
            inadmissible=self.inadmissible,
            forgets_option=random.random() < self.forgetting,
            ignores_price=random.random() < self.overspending,
            skips_features=random.random() < self.skipping,
            vague=random.random() < self.vagueness,
        )
        catalogue = world.catalogue
        task = random.choice(world.tasks("train"))
        shopper = Shopper(catalogue, catalogue.goals[world.goal_number(task)], random, habits)
        environment = world.make()

        def act(observation: Observation) -> str:
            return shopper.act(environment.place, observation.admissible)

        return record_episode(environment, task, act, self.turn_limit, tokenizer)


def drill(seed: int, words: int) -> Episode:
    """DRILLED random tokens, and the same again as the agent's."""
    random = Random(seed)
    ids = [random.randrange(words) for _ in range(DRILLED)]
    return Episode([*ids, *ids], [False] * DRILLED + [True] * DRILLED, success=False)


@lru_cache(maxsize=2)
def _world(seed: int, products: int, turn_limit: int) -> ShopWorld:
    return ShopWorld(synthetic_catalogue(seed, products), mode="short", turn_limit=turn_limit)
