"""A hand-made shop of twelve products in WebShop's file format, with a search of its own."""

import json
from pathlib import Path
from random import Random

from rewardswap.envs.webshop.catalogue import Catalogue
from rewardswap.envs.webshop.goals import synthetic_goals
from rewardswap.envs.webshop.prices import draw_prices
from rewardswap.envs.webshop.reading import read_products

ITEMS, ATTRIBUTES = "items_shuffle_1000.json", "items_ins_v2_1000.json"
HUMAN, NOUNS = "items_human_ins.json", "name_nouns_small.json"


def record(asin: str, name: str, **fields: object) -> dict[str, object]:
    """One entry of the file of products."""
    return {
        "asin": asin,
        "name": name,
        "full_description": f"All about {name}.",
        "small_description": ["Made with care. ", "Easy to clean. "],
        "customization_options": "",
        "category": "garden",
        "query": "Mugs ",
        "product_category": "Home & Kitchen › Dining › Mugs",
        "pricing": "$12.50",
        "images": [],
        **fields,
    }


def options(**values: list[str] | None) -> dict[str, object]:
    """The file's form of options."""
    return {k: v and [{"value": value} for value in v] for k, v in values.items()}


MUG, SHIRT = "B000000001", "B000000002"

RECORDS = [
    record(
        MUG,
        "Blue Mug",
        customization_options=options(
            Size=["Small", "10/12 Ounce "], Color=["Dark Blue", "Red"], Style=None
        ),
        pricing="$12.50 to $14",
    ),
    record(
        SHIRT,
        "Linen Shirt <b>&",
        customization_options=options(Top=["Same", "Buy Now", "search"], Bottom=["Same", '5"']),
        query="shirts",
        product_category="Clothing › Men › Shirts",
        full_description="",
        small_description="",
        pricing="",
    ),
    *(record(f"B00000001{k}", f"Mug Number {k}", pricing=f"${k}") for k in range(10)),
]

INSTRUCTIONS = {
    MUG: {
        "attributes": ["easy clean", "dishwasher safe"],
        "instruction": "Find me easy clean mugs",
        "instruction_attributes": ["easy clean"],
    },
    SHIRT: {"attributes": ["linen"]},
}

PEOPLE = {
    SHIRT: [
        {
            "instruction": "i want a linen shirt.",
            "instruction_attributes": ["linen"],
            "instruction_options": ["same"],
        },
        {"instruction": "a shirt", "instruction_attributes": [], "instruction_options": []},
    ]
}

NAMES = {r["asin"]: [word.lower() for word in str(r["name"]).split()[:2]] for r in RECORDS}


def write_folder(folder: Path) -> Path:
    """The shop as a folder that `load_catalogue` takes."""
    contents = ((ITEMS, RECORDS), (ATTRIBUTES, INSTRUCTIONS), (HUMAN, PEOPLE), (NOUNS, NAMES))
    for name, content in contents:
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return folder


class WordSearch:
    """Finds the products with most words of the query in their name, then by asin."""

    def __init__(self, names: dict[str, str]) -> None:
        self._names = {asin: set(name.lower().split()) for asin, name in names.items()}

    def search(self, query: str, k: int = 50) -> list[tuple[str, float]]:
        wanted = set(query.split())
        scores = [(asin, float(len(words & wanted))) for asin, words in self._names.items()]
        return sorted((s for s in scores if s[1]), key=lambda s: (-s[1], s[0]))[:k]


def small_catalogue() -> Catalogue:
    """The shop in memory, its four goals in the order of the mug's options."""
    places = Path(ITEMS), Path(ATTRIBUTES)
    products = read_products(RECORDS, INSTRUCTIONS, *places)
    random = Random(0)
    prices = draw_prices(products.values(), random)
    goals = synthetic_goals(products.values(), prices, random)
    engine = WordSearch({asin: product.name for asin, product in products.items()})
    return Catalogue(products, prices, goals, NAMES, engine)
