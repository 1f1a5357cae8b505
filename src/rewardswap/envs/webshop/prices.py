"""Prices of WebShop's products: the numbers of a listing, and the one price that counts."""

import math
import re
from collections.abc import Iterable
from random import Random

from rewardswap.envs.webshop.products import Product

NOT_A_NUMBER = re.compile(r"[^\d.]")


def parse_prices(listing: str) -> tuple[float, ...]:
    """The first two numbers that follow a '$', in dollars: "$5.99 - $1,007" -> (5.99, 1007.0).

    Raises ValueError if there is none or what follows a '$' is no number.
    """
    parts = [NOT_A_NUMBER.sub("", part) for part in listing.split("$")[1:]]
    try:
        prices = tuple(float(part) for part in parts)
    except ValueError:
        prices = ()
    if not prices or not all(map(math.isfinite, prices)):
        raise ValueError(f"'pricing' is {listing[:80]!r}, expected a number after each '$'")
    return prices[:2]


def draw_prices(products: Iterable[Product], random: Random) -> dict[str, float]:
    """Dollars by asin: the price, or one uniform draw from the range, in the products' order."""
    prices: dict[str, float] = {}
    for product in products:
        low, high = product.pricing[0], product.pricing[-1]
        prices[product.asin] = low if len(product.pricing) == 1 else random.uniform(low, high)
    return prices
