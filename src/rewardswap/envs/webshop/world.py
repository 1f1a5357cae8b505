"""WebShop as a `World`: a catalogue's goals as tasks, split by product."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Literal

from rewardswap.envs.base import Observation, PromptStyle, Step
from rewardswap.envs.verl_agent import VERL_AGENT
from rewardswap.envs.webshop.actions import parse_action
from rewardswap.envs.webshop.catalogue import Catalogue
from rewardswap.envs.webshop.oracle import solve
from rewardswap.envs.webshop.place import Place
from rewardswap.envs.webshop.prompts import ShopPrompts
from rewardswap.envs.webshop.remarks import (
    ceiling_remark,
    duplicates_remark,
    overlap_remark,
    size_remark,
)
from rewardswap.envs.webshop.shop import TextShop
from rewardswap.envs.webshop.short import SHORT, ShortPages
from rewardswap.envs.webshop.splits import (
    TRAIN,
    VALID,
    distinct_goals,
    split_by_position,
    split_by_product,
)
from rewardswap.envs.webshop.wording import Mode
from rewardswap.task import Task

PageMode = Mode | Literal["short"]
"""Pages as the original's `text` or `text_rich`, or `short`: in few words for small models."""

SEARCH = "search[<your query>]"
"""How a page with a search bar offers a search; taken literally, it is one."""

INSTRUCTIONS = """\
You shop in a web store by text, one action per turn, for what the instruction asks for.
search[WORDS] looks products up; click[TEXT] presses what the page offers, and nothing else works: \
a product's code, an option's value, a button.
Choose every option that is asked for on the product's page first; then click[buy now] ends it."""
"""System text for pages in full sentences; for a small model's pages there is none."""


class ShopEnvironment:
    """One live visit to the shop of a `ShopWorld`; `reset` may switch to any other of its goals."""

    def __init__(self, world: "ShopWorld") -> None:
        self._world = world
        self._shop = _visitor(world.catalogue, world.mode)
        self._number: int | None = None
        self._over = False
        self._short: ShortPages | None = None

    def reset(self, task: Task) -> Observation:
        """Start a task anew; raises ValueError for a task of another world."""
        world = self._world
        self._number, self._over = world.goal_number(task), False
        if world.mode == SHORT:
            self._short = ShortPages(world.catalogue, world.catalogue.goals[self._number])
        return self._observe(self._shop.reset(self._number), self._number)

    def step(self, action: str) -> Step:
        """Take one action; raises ValueError before `reset` and after something was bought."""
        number = self._number
        if number is None or self._over:
            state = "not begun" if number is None else "over already"
            raise ValueError(f"the visit is {state}; call reset(task) before step({action!r})")
        valid = self._shop.accepts(action)
        text, score, self._over = self._shop.step(action)
        won = self._over and score == 1.0
        return Step(
            self._observe(text, number),
            valid,
            terminated=self._over,
            success=won,
            outcome=float(won),
            task_score=score if self._over else None,
        )

    @property
    def place(self) -> Place:
        """Where the visitor is; raises ValueError before `reset`."""
        return self._shop.place

    def close(self) -> None:
        """Leave the shop."""
        self._number = None

    def _observe(self, text: str, number: int) -> Observation:
        shop = self._shop
        offered = [name for name in shop.clickables if name != "search"]
        clicks = [command for name in offered if (command := click_command(name)) is not None]
        place = shop.place
        return Observation(
            text=text if self._short is None else self._short.tell(place),
            admissible=(SEARCH, *clicks) if shop.has_search_bar else tuple(clicks),
            state_key=place.key,
            progress=self._world.worth(number, place.asin, place.options),
        )


class ShopWorld:
    """A catalogue's goals as tasks: a task's family is its product's category, its origin the asin.

    Splits `train`, `valid` and `test` by product (ours: see `splits.SHARES`), or with
    `upstream_split` the original's `train` and `valid` by position, which share products. Of goals
    that are equal in content only the first is a task.

    Raises ValueError for a turn limit below one, an unknown mode, and too few products or goals.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        *,
        mode: PageMode = "text",
        turn_limit: int = 15,
        upstream_split: bool = False,
    ) -> None:
        if turn_limit < 1:
            raise ValueError(f"turn_limit is {turn_limit}, expected at least 1 turn")
        _visitor(catalogue, mode)  # refuses an unknown mode
        self.catalogue = catalogue
        self.mode = mode
        self.turn_limit = turn_limit
        self.instructions = INSTRUCTIONS if mode != SHORT else ""
        self.prompt_styles: Mapping[str, PromptStyle] = (
            {VERL_AGENT: ShopPrompts()} if mode == "text" else {}
        )
        self.upstream_split = upstream_split
        split = split_by_position if upstream_split else split_by_product
        self._numbers = distinct_goals(catalogue.goals)
        self._splits = split(catalogue.goals, self._numbers)
        self._describe = lru_cache(maxsize=None)(self._remarks)
        self.worth = lru_cache(maxsize=2**16)(self._worth)
        """Reward of buying product `asin` with `options` now for goal `number`; 0 without one."""

    def tasks(self, split: str) -> list[Task]:
        """Every goal of a split once, sorted by task id; raises ValueError naming the splits."""
        self._check(split)
        goals = self.catalogue.goals
        numbers = self._splits[split].items()
        return [Task(id, goals[n]["category"], goals[n]["asin"]) for id, n in numbers]

    def remarks(self, split: str) -> list[str]:
        """Sizes, goals out of reach, duplicates, where nouns are from, overlap.

        The first call for a split buys every goal's own product: about 60 microseconds a goal.
        Raises ValueError naming the splits.
        """
        self._check(split)
        return list(self._describe(split))

    def make(self) -> ShopEnvironment:
        """A new environment for all goals of this world."""
        return ShopEnvironment(self)

    def solution(self, task: Task) -> list[str]:
        """Actions that buy what is asked for; raises ValueError where no search finds it."""
        return solve(self.catalogue, self.catalogue.goals[self.goal_number(task)])

    def goal_number(self, task: Task) -> int:
        """The place of a task's goal in the catalogue; ValueError for a task of another world."""
        if task.id not in self._numbers:
            raise ValueError(
                f"unknown task {task.id!r} ({task.family}); take one of ShopWorld.tasks"
            )
        return self._numbers[task.id]

    def _check(self, split: str) -> None:
        if split not in self._splits:
            raise ValueError(f"unknown split {split!r}, this world has {sorted(self._splits)}")

    def _remarks(self, split: str) -> tuple[str, ...]:
        numbers = self._splits[split].values()
        overlap = []
        if self.upstream_split and split == VALID:
            overlap = [overlap_remark(self.catalogue, numbers, self._splits[TRAIN].values())]
        return (
            size_remark(self.catalogue, split, numbers),
            ceiling_remark(self.catalogue, split, numbers),
            *duplicates_remark(self.catalogue, len(self._numbers)),
            f"all splits: source of the nouns of product names: {self.catalogue.nouns_source}",
            *overlap,
        )

    def _worth(self, number: int, asin: str, options: tuple[tuple[str, str], ...]) -> float:
        if not asin:
            return 0.0
        catalogue = self.catalogue
        product, price = catalogue.products[asin], catalogue.prices[asin]
        return catalogue.reward(product, catalogue.goals[number], price, dict(options))


def _visitor(catalogue: Catalogue, mode: PageMode) -> TextShop:
    return TextShop(catalogue, "text" if mode == SHORT else mode)


@lru_cache(maxsize=2**16)
def click_command(text: str) -> str | None:
    """The action that clicks on a text; none for a text that no action can name."""
    command = f"click[{text}]"
    return command if parse_action(command) == ("click", text) else None
