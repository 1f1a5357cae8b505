"""The small shop with an instruction for every product, so that all three splits have goals.

By the hash of their asins, mugs 0, 2, 5 and 9 are in `valid`, mug 3 is in `test`, the rest in
`train`. Mug 0 has a goal that the colour rule puts out of reach; mug 3 has one goal twice.
"""

from pathlib import Path
from random import Random

from small_shop import ATTRIBUTES, INSTRUCTIONS, ITEMS, MUG, NAMES, RECORDS, WordSearch, options

from rewardswap.envs.webshop.catalogue import Catalogue
from rewardswap.envs.webshop.goals import synthetic_goals
from rewardswap.envs.webshop.prices import draw_prices
from rewardswap.envs.webshop.reading import read_products

PLAIN_MUGS = [f"B00000001{k}" for k in range(10)]
CHOICES = {
    PLAIN_MUGS[0]: options(Color=["Red1", "Green"]),  # bought, "red1" counts as "red"
    PLAIN_MUGS[3]: options(Size=["One", "one "]),
}


def stocked_catalogue() -> Catalogue:
    """Goals in the order of the products and their options: four of the blue mug come first."""
    records = [
        r | {"customization_options": CHOICES[a]} if (a := r["asin"]) in CHOICES else r
        for r in RECORDS
    ]
    wanted = {
        a: {
            "attributes": ["easy clean"],
            "instruction": f"Find me {name[-1]}",
            "instruction_attributes": ["easy clean"],
        }
        for a, name in NAMES.items()
    }
    products = read_products(
        records, wanted | {MUG: INSTRUCTIONS[MUG]}, Path(ITEMS), Path(ATTRIBUTES)
    )
    random = Random(0)
    prices = draw_prices(products.values(), random)
    goals = synthetic_goals(products.values(), prices, random)
    engine = WordSearch({asin: product.name for asin, product in products.items()})
    return Catalogue(products, prices, goals, NAMES, engine)
