"""Which goals cannot be reached: an artefact of the reward's rules, found by the reward itself."""

from collections.abc import Iterable

from rewardswap.envs.webshop.catalogue import Catalogue
from rewardswap.envs.webshop.goals import Goal


def own_options(goal: Goal) -> dict[str, str]:
    """The options that a goal asks for, as if chosen; a human goal names values alone."""
    wanted = goal["goal_options"]
    return wanted if isinstance(wanted, dict) else {value: value for value in wanted}


def is_reachable(catalogue: Catalogue, goal: Goal) -> bool:
    """Whether buying a goal's own product with the options that it asks for scores 1."""
    asin = goal["asin"]
    product, price = catalogue.products[asin], catalogue.prices[asin]
    return catalogue.reward(product, goal, price, own_options(goal)) == 1.0


def unreachable(catalogue: Catalogue, numbers: Iterable[int]) -> list[int]:
    """Those places in the list of goals whose goals no purchase of their own product reaches."""
    return [number for number in numbers if not is_reachable(catalogue, catalogue.goals[number])]
