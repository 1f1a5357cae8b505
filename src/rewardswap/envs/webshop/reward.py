"""WebShop's reward: how much of what a goal asks for the bought product has."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from rewardswap.envs.webshop.goals import Goal
from rewardswap.envs.webshop.matching import is_same, plain_colour
from rewardswap.envs.webshop.products import Product

NO_NOUNS = 0.2
"""The title's score for a goal whose product's name has no nouns."""


def purchase_reward(
    product: Product,
    goal: Goal,
    price: float,
    options: Mapping[str, str],
    nouns: Mapping[str, Sequence[str]],
) -> float:
    """The reward in [0, 1] of buying a product at a price in dollars with the chosen options.

    `nouns` holds those of product names by asin; raises ValueError for a product it lacks.
    """
    wanted = goal["goal_options"]
    asked: Iterable[str | tuple[str, str]]
    asked = wanted.items() if isinstance(wanted, dict) else wanted
    points = (
        count_attributes(product, goal["attributes"])
        + count_options(options.values(), asked)
        + (price <= goal["price_upper"])
    )
    most = len(goal["attributes"]) + len(wanted) + 1
    return type_factor(product, goal, nouns) * (points / most)


def type_factor(product: Product, goal: Goal, nouns: Mapping[str, Sequence[str]]) -> float:
    """1, 0.5, 0.1 or 0: whether the product is the kind of thing that the goal asks for.

    An unlike title overrides everything else, an equal query too.
    """
    title = title_score(_nouns(nouns, product.asin), _nouns(nouns, goal["asin"]))
    if title == 0.0:
        return 0.0
    if title < 0.1:
        return 0.1
    alike = (
        title > 0.2
        or product.query == goal["query"]
        or len(_parts(product.product_category) & _parts(goal["product_category"])) >= 2
    )
    return 1.0 if alike else 0.5


def title_score(nouns: Sequence[str], wanted: Sequence[str]) -> float:
    """Share of the wanted nouns (duplicates count in the total only) that a name has."""
    if not wanted:
        return NO_NOUNS
    return len(set(nouns) & set(wanted)) / len(wanted)


def count_attributes(product: Product, wanted: Iterable[str]) -> int:
    """Wanted attributes that the product has, by its attributes or word for word in its text."""
    return sum(_has_attribute(product, attribute) for attribute in wanted)


def count_options(chosen: Iterable[str], wanted: Iterable[str | tuple[str, str]]) -> int:
    """Wanted options (values, or pairs of name and value) that some chosen value matches."""
    values = [plain_colour(value) for value in chosen]
    return sum(
        any(is_same(value, option) for value in values) for option in map(plain_colour, wanted)
    )


@lru_cache(maxsize=2**15)
def _has_attribute(product: Product, wanted: str) -> bool:
    return (
        any(is_same(attribute, wanted) for attribute in product.attributes)
        or wanted in product.name.lower()
        or wanted in " ".join(product.bullets).lower()
        or wanted in product.description.lower()
    )


def _nouns(nouns: Mapping[str, Sequence[str]], asin: str) -> Sequence[str]:
    if asin not in nouns:
        raise ValueError(f"no nouns are known for product {asin!r}; is it of another catalogue?")
    return nouns[asin]


def _parts(path: str) -> set[str]:
    return {part.strip() for part in path.split("›")}
