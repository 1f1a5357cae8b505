"""A shop's catalogue: products, prices, goals, search and reward, shared by all its visitors."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Literal, Protocol, runtime_checkable

from rewardswap.envs.webshop.cache import open_index
from rewardswap.envs.webshop.files import (
    HUMAN,
    Size,
    find_nouns,
    find_set,
    read_nouns,
    read_records,
    read_table,
)
from rewardswap.envs.webshop.goals import (
    SHUFFLE_SEED,
    Goal,
    human_goals,
    read_instructions,
    synthetic_goals,
)
from rewardswap.envs.webshop.prices import draw_prices
from rewardswap.envs.webshop.products import Product
from rewardswap.envs.webshop.reading import product_from_upstream, read_products
from rewardswap.envs.webshop.reward import purchase_reward

Instructions = Literal["synthetic", "human"]
"""Whose instructions the goals are: made from a product's data, or written by people."""

MOST_RESULTS = 50
"""Products that a search finds at most."""


@runtime_checkable
class SearchEngine(Protocol):
    """What a catalogue needs of a search engine."""

    def search(self, query: str, k: int = MOST_RESULTS) -> list[tuple[str, float]]:
        """The best `k` products for a query, best first: asin and score."""
        ...


class Catalogue:
    """A set of products with one price each, the goals made for them and a search engine."""

    def __init__(
        self,
        products: Mapping[str, Product],
        prices: Mapping[str, float],
        goals: Sequence[Goal],
        nouns: Mapping[str, Sequence[str]],
        engine: SearchEngine,
        nouns_source: str = "unknown",
    ) -> None:
        self.products = products
        self.prices = prices
        """Dollars by asin."""
        self.goals = goals
        self.nouns_source = nouns_source
        """Program and model, with versions, that found the nouns of the products' names."""
        self._nouns = nouns
        self._engine = engine

    def search(self, query: str, k: int = MOST_RESULTS) -> list[str]:
        """Asins of the best `k` products for a query, best first."""
        return [asin for asin, _ in self._engine.search(query, k)]

    def reward(
        self,
        product: Product | Mapping[str, object],
        goal: Goal,
        price: float,
        options: Mapping[str, str],
    ) -> float:
        """The reward in [0, 1] of buying a product at a price in dollars with the chosen options.

        The product may be in the original's loaded form (Title, BulletPoints, Attributes, ...).
        Raises ValueError for a product whose nouns the catalogue does not know.
        """
        if not isinstance(product, Product):
            product = product_from_upstream(product)
        return purchase_reward(product, goal, price, options, self._nouns)


def load_catalogue(
    folder: Path | str,
    seed: int = 0,
    upstream_draw: bool = False,
    instructions: Instructions = "synthetic",
    size: Size = "auto",
    cache: Path | str | None = None,
) -> Catalogue:
    """The catalogue of WebShop's folder data/, with a table of nouns (name_nouns*.json) beside it.

    Prices and limits are drawn with `seed`; `upstream_draw` throws one draw away first, as the
    original does where it fixes its seed. A folder that has both the small and the full set needs
    `size`. The search index of a large set is kept in the folder `cache`, see `cache_folder`; "off"
    keeps none. Raises ValueError naming the path for files that are missing, cut or wrong, and for
    a set without instructions.
    """
    if instructions not in ("synthetic", "human"):
        raise ValueError(f"unknown instructions {instructions!r}, expected 'synthetic' or 'human'")
    folder = Path(folder)
    items_path, attributes_path = find_set(folder, size)
    table = read_table(attributes_path)
    products = read_products(read_records(items_path), table, items_path, attributes_path)
    nouns, nouns_source = read_nouns(find_nouns(folder), products)
    random = Random(seed)
    if upstream_draw:
        random.randint(0, 999999)
    prices = draw_prices(products.values(), random)
    if instructions == "human":
        source = folder / HUMAN
        written = read_instructions(read_table(source), products, source)
        goals = human_goals(products.values(), written, prices, random)
    else:
        source = attributes_path
        goals = synthetic_goals(products.values(), prices, random)
    if not goals:
        raise ValueError(
            f"{source}: has no instruction for any of the {len(products)} products of "
            f"{items_path.name}; take files of the same set that have instructions"
        )
    Random(SHUFFLE_SEED).shuffle(goals)
    engine = open_index(products, items_path, cache)
    return Catalogue(products, prices, goals, nouns, engine, nouns_source)
