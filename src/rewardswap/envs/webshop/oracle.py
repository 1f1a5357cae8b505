"""A shopper that knows everything: it proves that a goal can be reached, by playing."""

from rewardswap.envs.webshop.catalogue import Catalogue
from rewardswap.envs.webshop.ceiling import own_options
from rewardswap.envs.webshop.goals import Goal
from rewardswap.envs.webshop.pages import PAGE_SIZE


def solve(catalogue: Catalogue, goal: Goal) -> list[str]:
    """Actions that buy the goal's own product with the options asked for.

    Raises ValueError if a search for the product's title does not find it, or if what it buys is
    not worth 1 (in the real data some products never are).
    """
    asin = goal["asin"]
    product = catalogue.products[asin]
    results = catalogue.search(product.name.lower())
    if asin not in results:
        raise ValueError(f"product {asin} is not among the results for its own title")
    offered = {value for values in product.options.values() for value in values}
    options = {name: value for name, value in own_options(goal).items() if value in offered}
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
