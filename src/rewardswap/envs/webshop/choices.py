"""A product's page in `text_rich` with the chosen values marked."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from rewardswap.envs.webshop.pages import Kind, item_nodes
from rewardswap.envs.webshop.products import Product
from rewardswap.envs.webshop.wording import rich_line, visible


class ItemLines(NamedTuple):
    """A product's page below the instruction, line by line, with nothing chosen."""

    lines: Sequence[str]
    places: Mapping[str, Sequence[int]]
    """In which lines a value stands."""
    quoted: Sequence[str]
    """The values that hold a '"' themselves."""


@lru_cache(maxsize=2048)
def item_lines(product: Product) -> ItemLines:
    """The lines of a product's page."""
    lines: list[str] = []
    places: dict[str, list[int]] = defaultdict(list)
    for node in item_nodes(product):
        if text := visible(node.text):
            if node.kind is Kind.VALUE:
                places[text].append(len(lines))
            lines.append(rich_line(text, node.kind, clicked=False))
    quoted = tuple(value for value in places if '"' in value)
    return ItemLines(tuple(lines), dict(places), quoted)


def chosen_values(item: ItemLines, options: Mapping[str, str], query: str, page: int) -> set[str]:
    """The values that the original shows as chosen.

    They are those that stand in quotes in its page's address, which holds the query, the number of
    the results' page and the chosen options as JSON: a quoted word of the query counts, and a value
    with a quote in it does not.
    """
    address = f"{query.replace(' ', '+')}/{page}/{json.dumps(dict(options))}"
    chosen = {value for value in address.split('"')[1:-1] if value in item.places}
    return chosen.union(value for value in item.quoted if f'"{value}"' in address)


def mark_choices(
    product: Product, options: Mapping[str, str], query: str, page: int
) -> tuple[str, str]:
    """News of what was clicked, the last on the page first, and the page below the instruction."""
    item = item_lines(product)
    chosen = chosen_values(item, options, query, page)
    places = sorted((place, value) for value in chosen for place in item.places[value])
    lines = list(item.lines)
    for place, value in places:
        lines[place] = rich_line(value, Kind.VALUE, clicked=True)
    news = "".join(f"You have clicked {value}.\n" for _, value in reversed(places))
    return news, "".join(lines)
