"""WebShop's two ways to put a page into words: `text` and `text_rich`."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Literal

from rewardswap.envs.webshop.pages import Kind, Node, card_nodes, item_nodes
from rewardswap.envs.webshop.products import Product

Mode = Literal["text", "text_rich"]
"""`text`: pieces joined by SEPARATOR; `text_rich`: a line each, buttons and choices marked."""

MODES: tuple[Mode, ...] = ("text", "text_rich")

SEPARATOR = " [SEP] "

BLANKS = " \t\n\f\r"
"""What HTML counts as white space."""

LEADS = {Kind.BUTTON: "", Kind.LINK: "\n", Kind.VALUE: "  "}
"""What stands before a thing to click in `text_rich`."""


def words(nodes: Iterable[Node], mode: Mode, visited: bool = False) -> str:
    """Pieces of a page in words; with `visited` `text_rich` marks its links as clicked."""
    if mode == "text":
        return SEPARATOR.join([text.strip() for node in nodes if (text := visible(node.text))])
    return "".join(
        [
            rich_line(text, node.kind, visited and node.kind is Kind.LINK)
            for node in nodes
            if (text := visible(node.text))
        ]
    )


def join(*parts: str, mode: Mode) -> str:
    """Worded parts of one page as one text."""
    return (SEPARATOR if mode == "text" else "").join(parts)


def visible(text: str) -> str:
    """A text as HTML keeps it: white space alone is one space, and nothing if it has a newline."""
    if text.strip(BLANKS):
        return text
    return " " if text and "\n" not in text else ""


def rich_line(text: str, kind: Kind, clicked: bool) -> str:
    """One piece of a page in `text_rich`, with its newline."""
    if kind is Kind.TEXT:
        return f"{text}\n"
    mark = "clicked button" if clicked else "button"
    return f"{LEADS[kind]}[{mark}] {text} [{mark}_]\n"


@lru_cache(maxsize=2048)
def item_words(product: Product, mode: Mode) -> str:
    """A product's page below the instruction with nothing chosen."""
    return words(item_nodes(product), mode)


@lru_cache(maxsize=8192)
def card_words(product: Product, mode: Mode, visited: bool = False) -> str:
    """One product among the results; `text_rich` marks the visited."""
    return words(card_nodes(product), mode, visited)
