"""A shopper that knows everything: it proves that a goal can be reached, by playing."""

from collections.abc import Mapping, Sequence

from rewardswap.envs.webshop.catalogue import Catalogue
from rewardswap.envs.webshop.goals import Goal
from rewardswap.envs.webshop.pages import PAGE_SIZE


def solve(catalogue: Catalogue, goal: Goal) -> list[str]:
    """Actions that buy the goal's own product with the options asked for.

    Raises ValueError if a search for the product's title does not find it, or if what it buys is
    not worth 1 (in the real data some products never are).
    """
    asin, wanted = goal["asin"], goal["goal_options"]
    product = catalogue.products[asin]
    results = catalogue.search(product.name.lower())
    if asin not in results:
        raise ValueError(f"product {asin} is not among the results for its own title")
    options = wanted if isinstance(wanted, dict) else _named(product.options, wanted)
    reward = catalogue.reward(product, goal, catalogue.prices[asin], options)
    if reward != 1.0:
        raise ValueError(f"product {asin} with options {options} is worth {reward}, not 1")
    return [
        f"search[{product.name.lower()}]",
        *["click[next >]"] * (results.index(asin) // PAGE_SIZE),
        f"click[{asin.lower()}]",
        *(f"click[{value}]" for value in options.values()),
        "click[buy now]",
    ]


def _named(options: Mapping[str, Sequence[str]], wanted: Sequence[str]) -> dict[str, str]:
    """The first option that has each of the wanted values."""
    return {
        name: value
        for value in wanted
        for name in [next((n for n, values in options.items() if value in values), "")]
        if name
    }
