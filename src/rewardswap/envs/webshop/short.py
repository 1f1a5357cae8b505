"""Pages in few words, for models too small to read the original's (ours).

Each page says what is new since the pages before it, which such a model has in its history: the
instruction stands on the first page alone, a page that comes again is named, and a product's page
says what was chosen once something was. A product's asin stands behind its title and price, so that
a model which reads it has read what it is of.
"""

import math
import re
from typing import Literal

from rewardswap.envs.webshop.catalogue import Catalogue
from rewardswap.envs.webshop.goals import Goal
from rewardswap.envs.webshop.pages import DESCRIPTION, FEATURES, PAGE_SIZE
from rewardswap.envs.webshop.place import DONE, INDEX, ITEM, RESULTS, Place
from rewardswap.envs.webshop.products import Product

SHORT: Literal["short"] = "short"
"""Name of this way to put pages into words."""

LIMIT = re.compile(r"price lower than (\d+)\.00 dollars$")


class ShortPages:
    """The pages of one episode in lower case; one that was told before is only named again."""

    def __init__(self, catalogue: Catalogue, goal: Goal) -> None:
        self._catalogue = catalogue
        self._goal = goal
        self._told: set[Place] = set()

    def tell(self, place: Place) -> str:
        """The page of a place."""
        told = place in self._told
        self._told.add(place)
        if place.page == INDEX:
            return _index(self._goal)
        if place.page == RESULTS:
            number = f"page {place.number} of {math.ceil(len(place.results) / PAGE_SIZE)}"
            return f"{number} again" if told else " ; ".join([number, *self._cards(place)])
        product = self._catalogue.products[place.asin]
        if place.page == DONE:
            return f"bought {place.asin}".lower()
        if place.page == ITEM:
            return "product again" if told and not place.options else _item(product, place)
        return f"{place.page} again".lower() if told else _sub_page(product, place.page)

    def _cards(self, place: Place) -> list[str]:
        asins = place.results[(place.number - 1) * PAGE_SIZE : place.number * PAGE_SIZE]
        products = [self._catalogue.products[asin] for asin in asins]
        return [f"{p.name} {short_price(p)} {p.asin}".lower() for p in products]


def short_price(product: Product) -> str:
    """The price in whole dollars, rounded up: it is above a whole limit just as before."""
    return " to ".join(f"${math.ceil(price)}" for price in product.pricing)


def _index(goal: Goal) -> str:
    return LIMIT.sub(r"price lower than $\1", goal["instruction_text"]).lower()


def _item(product: Product, place: Place) -> str:
    if place.options:
        return " ".join(["chosen", *(value for _, value in place.options)])
    options = [f"{name} : {' , '.join(values)}" for name, values in product.options.items()]
    title = f"{product.asin} {product.name} {short_price(product)}".lower()
    return " ; ".join([title, *options])


def _sub_page(product: Product, label: str) -> str:
    text = {DESCRIPTION: product.description, FEATURES: " ; ".join(product.bullets)}.get(label, "")
    return f"{label} : {text}".lower()
