"""A shopper that knows only the instruction and what it was shown; it writes demonstrations."""

from dataclasses import dataclass
from random import Random

from rewardswap.envs.webshop.catalogue import Catalogue
from rewardswap.envs.webshop.goals import Goal
from rewardswap.envs.webshop.pages import PAGE_SIZE
from rewardswap.envs.webshop.place import INDEX, ITEM, RESULTS, Place
from rewardswap.envs.webshop.products import Product
from rewardswap.envs.webshop.vocabulary import DEPARTMENTS, OPTIONS

NOUNS = {kind.query: kind.noun for department in DEPARTMENTS for kind in department.kinds}
"""What titles call the things that instructions ask for."""

BUTTONS = ("back to search", "< prev", "next >", "features", "buy now")


@dataclass(frozen=True, slots=True)
class Habits:
    """How a shopper goes astray; the defaults are one without fault."""

    noise: float = 0.0
    """Share of turns with a random action."""
    inadmissible: float = 1 / 3
    """Share of those that are well formed but not offered."""
    forgets_option: bool = False
    """Whether one of the options is never chosen."""
    ignores_price: bool = False
    """Whether a price above the limit is no reason to go on looking."""
    skips_features: bool = False
    """Whether it buys without reading whether a product has what its title does not name."""
    vague: bool = False
    """Whether it searches for the kind of product alone."""


class Shopper:
    """Searches, looks through the results in order, reads, chooses and buys.

    Of a product it uses only what pages have shown it: title and price among the results, options
    on its page, features once it has read them. It goes on sensibly from any page. Raises
    ValueError for an instruction of a person, and KeyError for a thing that no generated shop has.
    """

    def __init__(
        self, catalogue: Catalogue, goal: Goal, random: Random, habits: Habits | None = None
    ) -> None:
        self._catalogue = catalogue
        self._random = random
        self._habits = habits or Habits()
        self._goal = goal
        wanted = goal["goal_options"]
        if not isinstance(wanted, dict):
            raise ValueError("the shopper reads generated instructions only, got a person's")
        self._wanted = wanted
        self._noun = NOUNS[goal["query"]]
        self._rejected: set[str] = set()
        self._read: set[str] = set()
        self._vague = self._habits.vague
        forgotten = random.choice(list(self._wanted)) if self._habits.forgets_option else None
        self._to_choose = {k: v for k, v in self._wanted.items() if k != forgotten}

    def act(self, place: Place, admissible: tuple[str, ...]) -> str:
        """The next action; `admissible` is read by the noise alone."""
        if self._random.random() < self._habits.noise:
            return self._stray(admissible)
        if place.page == INDEX:
            return self._search()
        if place.page == RESULTS:
            return self._look_through(place)
        product = self._catalogue.products[place.asin]
        if place.page == ITEM:
            return self._consider(product, dict(place.options))
        self._read.add(product.asin)
        return "click[< prev]"

    def _search(self) -> str:
        words = [] if self._vague else self._goal["attributes"]
        return f"search[{' '.join([*words, self._goal['query']])}]"

    def _look_through(self, place: Place) -> str:
        first = (place.number - 1) * PAGE_SIZE
        for asin in place.results[first : first + PAGE_SIZE]:
            if asin not in self._rejected and self._may_do(self._catalogue.products[asin]):
                return f"click[{asin.lower()}]"
        if len(place.results) > first + PAGE_SIZE:
            return "click[next >]"
        self._vague = not self._vague
        self._rejected.clear()
        return self._search()

    def _may_do(self, product: Product) -> bool:
        """By title and price alone."""
        return product.name.lower().endswith(self._noun) and (
            self._habits.ignores_price or product.pricing[0] <= self._goal["price_upper"]
        )

    def _consider(self, product: Product, chosen: dict[str, str]) -> str:
        if not self._may_do(product) or any(
            value not in product.options.get(name, ()) for name, value in self._wanted.items()
        ):
            return self._reject(product)
        untold = [name for name in self._goal["attributes"] if name not in product.name.lower()]
        if untold and not self._habits.skips_features:
            if product.asin not in self._read:
                return "click[features]"
            told = " ".join(product.bullets)
            if any(name not in told for name in untold):
                return self._reject(product)
        for name, value in self._to_choose.items():
            if chosen.get(name) != value:
                return f"click[{value}]"
        return "click[buy now]"

    def _reject(self, product: Product) -> str:
        self._rejected.add(product.asin)
        return "click[< prev]"

    def _stray(self, admissible: tuple[str, ...]) -> str:
        random = self._random
        if random.random() < self._habits.inadmissible:
            value = random.choice(random.choice(list(OPTIONS.values())))
            return f"click[{random.choice([value, random.choice(BUTTONS)])}]"
        action = random.choice(admissible)
        if action.startswith("search["):
            query = random.choice(list(NOUNS)) if random.random() < 0.5 else self._goal["query"]
            return f"search[{query}]"
        return action
