"""What WebShop's pages show and what can be clicked on them, before it is put into words."""

import json
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from rewardswap.envs.webshop.products import Product

PAGE_SIZE = 10
"""Products on a page of results."""

SEARCH, BACK, PREVIOUS, NEXT, BUY = "Search", "Back to Search", "< Prev", "Next >", "Buy Now"
DESCRIPTION, FEATURES, REVIEWS = "Description", "Features", "Reviews"
SUB_PAGES = (DESCRIPTION, FEATURES, REVIEWS)

HTML_SAFE = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "'": "\\u0027"})


class Kind(Enum):
    """What a piece of text on a page is."""

    TEXT = 0
    BUTTON = 1
    LINK = 2
    """A product in the results."""
    VALUE = 3
    """A value of an option."""


class Node(NamedTuple):
    """A piece of text on a page."""

    text: str
    kind: Kind = Kind.TEXT


class Target(NamedTuple):
    """Where a click leads: `value` is a button's label, an asin, or the value of option `name`."""

    kind: Kind
    value: str
    name: str = ""


Targets = Mapping[str, Target]
"""What can be clicked on a page, by its lower-case text, in the page's order."""


def button(label: str) -> Node:
    """A button as part of a page."""
    return Node(label, Kind.BUTTON)


def _targets(*labels: str) -> dict[str, Target]:
    return {label.lower(): Target(Kind.BUTTON, label) for label in labels}


INDEX_TARGETS: Targets = _targets(SEARCH)
SUB_TARGETS: Targets = _targets(BACK, PREVIOUS)
DONE_TARGETS: Targets = {}


def index_nodes(instruction: str) -> list[Node]:
    """The whole first page."""
    return [Node("WebShop"), Node("Instruction: "), Node(instruction), button(SEARCH)]


def head_nodes(instruction: str) -> list[Node]:
    """The first two pieces of every page but the first and the last."""
    return [Node("Instruction:"), Node(instruction)]


def results_head(number: int, total: int) -> list[Node]:
    """The results' page below the instruction and above the products; pages count from 1."""
    count = Node(f"Page {number} (Total results: {total})")
    previous = [button(PREVIOUS)] if number > 1 else []
    return [button(BACK), count, *previous, button(NEXT)]


def card_nodes(product: Product) -> list[Node]:
    """One product among the results."""
    return [Node(product.asin, Kind.LINK), Node(product.name), Node(product.price_tag)]


def results_targets(number: int, asins: Sequence[str]) -> Targets:
    """What can be clicked among the results; pages count from 1."""
    targets = _targets(BACK, PREVIOUS, NEXT) if number > 1 else _targets(BACK, NEXT)
    for asin in asins:
        targets[asin.lower()] = Target(Kind.LINK, asin)
    return targets


@lru_cache(maxsize=2048)
def item_nodes(product: Product) -> tuple[Node, ...]:
    """A product's page below the instruction."""
    nodes = [button(BACK), button(PREVIOUS)]
    for name, values in product.options.items():
        nodes.append(Node(name))
        nodes += [Node(value, Kind.VALUE) for value in values]
    nodes += [Node(product.name), Node(f"Price: {product.price_tag}"), Node("Rating: N.A.")]
    return (*nodes, *map(button, (*SUB_PAGES, BUY)))


@lru_cache(maxsize=2048)
def item_targets(product: Product) -> Targets:
    """What can be clicked on a product's page.

    A value of two options belongs to the last; one that reads like a button is that button.
    """
    buttons = _targets(BACK, PREVIOUS, *SUB_PAGES, BUY)
    targets = dict(buttons)
    for name, values in product.options.items():
        for value in values:
            targets[value] = Target(Kind.VALUE, value, name)
    return targets | buttons


def sub_nodes(product: Product, label: str) -> list[Node]:
    """One of a product's SUB_PAGES below the instruction; there are no reviews."""
    nodes = [button(BACK), button(PREVIOUS)]
    if label == DESCRIPTION:
        nodes.append(Node(product.description))
    elif label == FEATURES:
        nodes += [Node(f" {bullet}") for bullet in product.bullets]
    return nodes


def done_nodes(asin: str, options: Mapping[str, str], reward: float) -> list[Node]:
    """The whole last page, with the fields that the original leaves without a value."""
    bought = json.dumps(options, sort_keys=True).translate(HTML_SAFE)
    texts = (
        *("Thank you for shopping with us!", "Your code: ", "None"),
        *(" (Paste it in your MTurk interface.)", "Purchased", "asin", asin, "options", bought),
        *("attrs", "None", "category", "None", "query", "None", "product category", "None"),
        *("Target", "asin", "options", "attrs", "price upper", "instuction text", "category"),
        *("product category", "query", "Goal ", "None", "Reward"),
        *("Your score (min 0.0, max 1.0)", str(reward), "Reward Details ", "None"),
    )
    return [Node(text) for text in texts]
