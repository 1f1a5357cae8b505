"""Pages in few words, for models too small to read the original's (ours).

Each page says what is new since the pages before it, which such a model has in its history: the
instruction stands on the first page alone, and a product's page names what was chosen once
something was.
"""

import math
import re
from collections.abc import Sequence
from typing import Literal

from rewardswap.envs.webshop.catalogue import Catalogue
from rewardswap.envs.webshop.goals import Goal
from rewardswap.envs.webshop.pages import DESCRIPTION, FEATURES, PAGE_SIZE
from rewardswap.envs.webshop.place import DONE, INDEX, ITEM, RESULTS, Place
from rewardswap.envs.webshop.products import Product

SHORT: Literal["short"] = "short"
"""Name of this way to put pages into words."""

LIMIT = re.compile(r"price lower than (\d+)\.00 dollars$")


def short_page(catalogue: Catalogue, goal: Goal, place: Place) -> str:
    """The page of a place, in lower case."""
    if place.page == INDEX:
        return LIMIT.sub(r"price lower than $\1", goal["instruction_text"]).lower()
    if place.page == DONE:
        return f"bought {place.asin}".lower()
    if place.page == RESULTS:
        asins = place.results[(place.number - 1) * PAGE_SIZE : place.number * PAGE_SIZE]
        return _results(place, [catalogue.products[asin] for asin in asins])
    product = catalogue.products[place.asin]
    if place.page == ITEM:
        return _item(product, place)
    return _sub_page(product, place.page)


def short_price(product: Product) -> str:
    """The price in whole dollars, rounded up: it is above a whole limit just as before."""
    return " to ".join(f"${math.ceil(price)}" for price in product.pricing)


def _results(place: Place, products: Sequence[Product]) -> str:
    pages = math.ceil(len(place.results) / PAGE_SIZE)
    cards = [f"{p.asin} {p.name} {short_price(p)}".lower() for p in products]
    return " ; ".join([f"page {place.number} of {pages}", *cards])


def _item(product: Product, place: Place) -> str:
    if place.options:
        return " ".join(["chosen", *(value for _, value in place.options)])
    options = [f"{name} : {' , '.join(values)}" for name, values in product.options.items()]
    return " ; ".join([f"{product.name.lower()} {short_price(product)}", *options])


def _sub_page(product: Product, label: str) -> str:
    text = {DESCRIPTION: product.description, FEATURES: " ; ".join(product.bullets)}.get(label, "")
    return f"{label} : {text}".lower()
