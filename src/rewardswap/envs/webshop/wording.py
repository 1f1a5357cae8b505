"""WebShop's two ways to put a page into words: `text` and `text_rich`."""

import json
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Literal

from rewardswap.envs.webshop.pages import Kind, Node, card_nodes, head_nodes, item_nodes
from rewardswap.envs.webshop.products import Product

Mode = Literal["text", "text_rich"]
"""`text`: pieces joined by SEPARATOR; `text_rich`: a line each, buttons and choices marked."""

MODES: tuple[Mode, ...] = ("text", "text_rich")

SEPARATOR = " [SEP] "

CHOICES = (Kind.LINK, Kind.VALUE)
LEADS = {Kind.BUTTON: "", Kind.LINK: "\n", Kind.VALUE: "  "}
"""What stands before a thing to click in `text_rich`."""

BLANKS = " \t\n\f\r"
"""What HTML counts as white space."""


def words(nodes: Iterable[Node], mode: Mode, chosen: Collection[str] = ()) -> str:
    """Pieces of a page in words; `chosen` holds the links and values that were clicked."""
    if mode == "text":
        return SEPARATOR.join(text.strip() for node in nodes if (text := visible(node.text)))
    lines: list[str] = []
    news: list[str] = []
    for text, kind in nodes:
        if not (text := visible(text)):
            continue
        clicked = kind in CHOICES and text in chosen
        lines.append(_line(kind, text, clicked))
        if clicked and kind is Kind.VALUE:
            news.append(f"You have clicked {text}.\n")
    return "".join(news[::-1] + lines)


def join(*parts: str, mode: Mode) -> str:
    """Worded parts of one page as one text."""
    return (SEPARATOR if mode == "text" else "").join(parts)


def visible(text: str) -> str:
    """A text as HTML keeps it: white space alone is one space, and nothing if it has a newline."""
    if text.strip(BLANKS):
        return text
    return " " if text and "\n" not in text else ""


def _line(kind: Kind, text: str, clicked: bool) -> str:
    if kind is Kind.TEXT:
        return f"{text}\n"
    mark = "clicked button" if clicked else "button"
    return f"{LEADS[kind]}[{mark}] {text} [{mark}_]\n"


@lru_cache(maxsize=2048)
def item_words(product: Product, mode: Mode) -> str:
    """A product's page below the instruction with nothing chosen."""
    return words(item_nodes(product), mode)


def chosen_item_words(
    instruction: str, product: Product, options: Mapping[str, str], query: str, page: int
) -> str:
    """A product's whole page in `text_rich` with the chosen values marked.

    As in the original a value counts as chosen if it stands in quotes in the page's address, which
    holds the query, the number of the results' page and the options as JSON.
    """
    address = f"{query.replace(' ', '+')}/{page}/{json.dumps(dict(options))}"
    quoted = frozenset(address.split('"')[1:-1])
    odd = [
        value
        for values in product.options.values()
        for value in values
        if '"' in value and f'"{value}"' in address
    ]
    nodes = (*head_nodes(instruction), *item_nodes(product))
    return words(nodes, "text_rich", quoted.union(odd))


@lru_cache(maxsize=8192)
def card_words(product: Product, mode: Mode, visited: bool = False) -> str:
    """One product among the results; `text_rich` marks the visited."""
    return words(card_nodes(product), mode, (product.asin,) if visited else ())
