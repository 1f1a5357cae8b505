"""WebShop's goals: an instruction for one product, with the price limit that it names."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import product as combinations
from pathlib import Path
from random import Random
from typing import NamedTuple, TypedDict

from rewardswap.envs.webshop.files import COPY, is_strings
from rewardswap.envs.webshop.products import Product

PRICE_STEPS = tuple(10.0 * step for step in range(1, 100))
"""Dollars that a limit can be."""

NO_LIMIT = 1000000
"""Dollars; the limit of a goal whose product is too dear for one."""

SHUFFLE_SEED = 233
"""The seed with which the original shuffles its goals."""


class Goal(TypedDict):
    """One task of the shop; the keys are those of the original."""

    asin: str
    """The product that the instruction was made for."""
    category: str
    query: str
    name: str
    product_category: str
    instruction_text: str
    """What the agent reads."""
    attributes: list[str]
    """Attributes asked for, at least one."""
    price_upper: float
    """Dollars."""
    goal_options: dict[str, str] | list[str]
    """Options asked for: by name in a synthetic goal, values alone in a human one."""
    weight: float
    """How often the original samples it, relative to the others: rare attributes more often."""


class PriceLimit(NamedTuple):
    """A limit in dollars and the words that tell it."""

    dollars: float
    text: str


class HumanInstruction(NamedTuple):
    """An instruction written by a person for one product."""

    text: str
    attributes: tuple[str, ...]
    options: tuple[str, ...]


def draw_limit(price: float, random: Random) -> PriceLimit:
    """The larger of two of the next four steps above a price in dollars."""
    steps = [step for step in PRICE_STEPS if step > price][:4]
    if len(steps) < 2:
        return PriceLimit(NO_LIMIT, "")
    dollars = max(random.sample(steps, 2))
    return PriceLimit(dollars, f", and price lower than {dollars:.2f} dollars")


def synthetic_goals(
    products: Iterable[Product], prices: Mapping[str, float], random: Random
) -> list[Goal]:
    """One goal for every combination of options of every product with an instruction."""
    goals: list[Goal] = []
    for product in products:
        if product.instruction is None:
            continue
        limit = draw_limit(prices[product.asin], random)
        wanted = list(product.instruction_attributes)
        names = sorted(product.options)
        for values in combinations(*(product.options[name] for name in names)):
            options = dict(zip(names, values, strict=True))
            words = ", and ".join(f"{name}: {value}" for name, value in options.items())
            text = product.instruction + (f" with {words}" if words else "") + limit.text
            goals.append(_goal(product, text, wanted, limit, options))
    _weigh(goals)
    return goals


def human_goals(
    products: Iterable[Product],
    instructions: Mapping[str, Sequence[HumanInstruction]],
    prices: Mapping[str, float],
    random: Random,
) -> list[Goal]:
    """One goal for every human instruction that asks for an attribute; all weigh 1."""
    goals: list[Goal] = []
    for product in products:
        for instruction in instructions.get(product.asin, ()):
            if not instruction.attributes:
                continue
            limit = draw_limit(prices[product.asin], random)
            text = instruction.text.strip(".") + limit.text
            wanted, options = list(instruction.attributes), list(instruction.options)
            goals.append(_goal(product, text, wanted, limit, options))
    return goals


def read_instructions(
    table: Mapping[str, object], asins: Iterable[str], path: Path
) -> dict[str, tuple[HumanInstruction, ...]]:
    """Human instructions by asin of the given products; raises ValueError naming the product."""
    found: dict[str, tuple[HumanInstruction, ...]] = {}
    for asin in asins:
        entries = table.get(asin, [])
        if not isinstance(entries, list):
            raise ValueError(f"{path}: product {asin!r} has no list of instructions; {COPY}")
        found[asin] = tuple(_instruction(entry, asin, path) for entry in entries)
    return found


def _instruction(entry: object, asin: str, path: Path) -> HumanInstruction:
    if isinstance(entry, dict):
        text = entry.get("instruction")
        attributes = entry.get("instruction_attributes")
        options = entry.get("instruction_options")
        if isinstance(text, str) and is_strings(attributes) and is_strings(options):
            return HumanInstruction(text, tuple(attributes), tuple(options))
    raise ValueError(
        f"{path}: product {asin!r} has an entry without 'instruction', 'instruction_attributes' "
        f"or 'instruction_options'; {COPY}"
    )


def _goal(
    product: Product,
    text: str,
    attributes: list[str],
    limit: PriceLimit,
    options: dict[str, str] | list[str],
) -> Goal:
    return Goal(
        asin=product.asin,
        category=product.category,
        query=product.query,
        name=product.name,
        product_category=product.product_category,
        instruction_text=text,
        attributes=attributes,
        price_upper=limit.dollars,
        goal_options=options,
        weight=1,
    )


def _weigh(goals: Sequence[Goal]) -> None:
    """The mean over a goal's attributes of 1 / goals that ask for it."""
    counts = Counter(attribute for goal in goals for attribute in goal["attributes"])
    for goal in goals:
        wanted = goal["attributes"]
        goal["weight"] = sum(1.0 / counts[attribute] for attribute in wanted) / len(wanted)
