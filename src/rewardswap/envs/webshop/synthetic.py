"""A generated shop in WebShop's own file format: real enough to search in, no download (ours).

Products come in families: one that an instruction asks for, and decoys that differ from it in one
attribute, one value of an option, or the price. What a product is depends on the seed and its
family's number alone, so a smaller shop is the beginning of a larger one.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from random import Random

from rewardswap.envs.webshop.catalogue import Catalogue
from rewardswap.envs.webshop.files import HUMAN, NOUNS_SOURCE
from rewardswap.envs.webshop.goals import SHUFFLE_SEED, synthetic_goals
from rewardswap.envs.webshop.prices import draw_prices
from rewardswap.envs.webshop.reading import read_products
from rewardswap.envs.webshop.search import SearchIndex
from rewardswap.envs.webshop.vocabulary import (
    BRANDS,
    DEPARTMENTS,
    OPTIONS,
    USES,
    Department,
    Kind,
)

SOURCE = "the generator's own words"
"""Where the nouns of names are from."""

BLOCK = 10**4
"""Products whose asins are shuffled among themselves; a block's number is part of its asins."""

MOST_PRODUCTS = 100 * BLOCK
"""There are no more asins."""

HIDING = 0.25
"""Share of families whose features are told in the second bullet, which search does not index."""

CENTS = (0.0, 0.25, 0.5, 0.99)


@dataclass(frozen=True, slots=True)
class SyntheticProduct:
    """One generated product, as the files of the shop tell it."""

    asin: str
    record: Mapping[str, object]
    """Its entry in the file of products."""
    attributes: Mapping[str, object]
    """Its entry in the file of attributes and instructions."""
    nouns: tuple[str, ...]
    """Nouns of its name."""
    human: Mapping[str, object] | None
    """Its instruction as a person might word it; none for a decoy."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a product is, before it is put into the shop's words."""

    department: Department
    kind: Kind
    brand: str
    style: str
    material: str
    attributes: tuple[str, ...]
    options: Mapping[str, tuple[str, ...]]
    dollars: float
    use: str
    hides: bool
    """Whether what its title does not name is told where no search looks."""


def synthetic_products(seed: int, products: int) -> Iterator[SyntheticProduct]:
    """The first `products` products of a seed, one after another; raises ValueError over 10**6."""
    if not 1 <= products <= MOST_PRODUCTS:
        raise ValueError(f"products is {products}, expected 1 to {MOST_PRODUCTS}")
    step, start = _asin_steps(seed)
    plans = islice(_plans(seed), products)
    for number, (plan, wanted) in enumerate(plans):
        asin = f"B0SW{number // BLOCK:02}{(start + step * number) % BLOCK:04}"
        yield _product(asin, plan, wanted)


def synthetic_catalogue(seed: int = 0, products: int = 1000) -> Catalogue:
    """The generated shop with its goals, every one of which can be reached.

    Raises ValueError for fewer than one product or more than 10**6.
    """
    made = list(synthetic_products(seed, products))
    source = Path("generated")
    table = {product.asin: product.attributes for product in made}
    read = read_products((product.record for product in made), table, source, source)
    random = Random(seed)
    prices = draw_prices(read.values(), random)
    goals = synthetic_goals(read.values(), prices, random)
    Random(SHUFFLE_SEED).shuffle(goals)
    nouns = {product.asin: product.nouns for product in made}
    engine = SearchIndex.build((asin, product.contents) for asin, product in read.items())
    return Catalogue(read, prices, goals, nouns, engine, SOURCE)


def write_catalogue(folder: Path, seed: int = 0, products: int = 1000) -> None:
    """Write the generated shop as WebShop's own files, which `load_catalogue` reads.

    Raises ValueError if the folder has files in it.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} is no empty folder; name one that does not exist yet")
    folder.mkdir(parents=True, exist_ok=True)
    made = list(synthetic_products(seed, products))
    files: dict[str, object] = {
        "items_shuffle.json": [product.record for product in made],
        "items_ins_v2.json": {product.asin: product.attributes for product in made},
        HUMAN: {product.asin: [product.human] for product in made if product.human},
        "name_nouns.json": {
            NOUNS_SOURCE: SOURCE,
            **{product.asin: product.nouns for product in made},
        },
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")


def _asin_steps(seed: int) -> tuple[int, int]:
    """A step without common factor with BLOCK, and a start: every number comes up once."""
    random = Random(f"{seed}/asin")
    return 10 * random.randrange(100, 900) + random.choice((1, 3, 7, 9)), random.randrange(BLOCK)


def _plans(seed: int) -> Iterator[tuple[_Plan, tuple[str, ...]]]:
    """Products with the attributes that an instruction asks of them; none of a decoy."""
    family = 0
    while True:
        random = Random(f"{seed}/family/{family}")
        family += 1
        plan = _draw(random)
        wanted = tuple(random.sample(plan.attributes, random.randint(1, 2)))
        members = [(plan, wanted)]
        for differ in random.sample((_other_attribute, _other_value, _dearer), 2):
            decoy = differ(random, _other_make(random, plan), wanted)
            members.append((decoy, ()))
        yield from random.sample(members, len(members))


def _draw(random: Random) -> _Plan:
    department = random.choice(DEPARTMENTS)
    kind = random.choice(department.kinds)
    names = random.sample(kind.options, min(2, len(kind.options)))
    low, high = kind.dollars
    return _Plan(
        department=department,
        kind=kind,
        brand=random.choice(BRANDS),
        style=random.choice(department.styles),
        material=random.choice(department.materials),
        attributes=tuple(random.sample(department.attributes, random.randint(2, 4))),
        options={name: _values(random, name) for name in names},
        dollars=random.randint(low, high) + random.choice(CENTS),
        use=random.choice(USES),
        hides=random.random() < HIDING,
    )


def _values(random: Random, name: str) -> tuple[str, ...]:
    """Three or four values of an option, in the order in which the shop always lists them."""
    values = OPTIONS[name]
    chosen = set(random.sample(values, random.randint(3, 4)))
    return tuple(value for value in values if value in chosen)


def _other_make(random: Random, plan: _Plan) -> _Plan:
    """The same thing of another maker in another style."""
    style = random.choice([style for style in plan.department.styles if style != plan.style])
    brand = random.choice([brand for brand in BRANDS if brand != plan.brand])
    return replace(plan, brand=brand, style=style)


def _other_attribute(random: Random, plan: _Plan, wanted: Sequence[str]) -> _Plan:
    lost = random.choice(wanted)
    others = [name for name in plan.department.attributes if name not in plan.attributes]
    found = random.choice(others)
    return replace(plan, attributes=tuple(found if a == lost else a for a in plan.attributes))


def _other_value(random: Random, plan: _Plan, wanted: Sequence[str]) -> _Plan:
    """One value less (or another one in its place, where the option has more)."""
    name = random.choice(list(plan.options))
    lost = random.choice(plan.options[name])
    others = [value for value in OPTIONS[name] if value not in plan.options[name]]
    found = {random.choice(others)} if others else set()
    kept = (set(plan.options[name]) - {lost}) | found
    values = tuple(value for value in OPTIONS[name] if value in kept)
    return replace(plan, options={**plan.options, name: values})


def _dearer(random: Random, plan: _Plan, wanted: Sequence[str]) -> _Plan:
    """Dearer than any limit of the goal, which is at most 40 dollars above its price."""
    return replace(plan, dollars=plan.dollars + random.randint(50, 90))


def _product(asin: str, plan: _Plan, wanted: Sequence[str]) -> SyntheticProduct:
    kind = plan.kind
    shown, *told = plan.attributes
    bullets = [" and ".join(told), f"material: {plan.material}"]
    name = f"{plan.brand} {plan.style} {shown} {plan.material} {kind.noun}".title()
    record = {
        "asin": asin,
        "name": name,
        "category": plan.department.category,
        "query": kind.query,
        "product_category": f"{plan.department.path} › {kind.shelf} › {kind.query.title()}",
        "full_description": f"A {plan.style} {kind.noun} of {plan.material} for {plan.use}.",
        "small_description": bullets[::-1] if plan.hides else bullets,
        "customization_options": {
            name: [{"value": value} for value in values] for name, values in plan.options.items()
        },
        "pricing": f"${plan.dollars:.2f}",
        "images": [],
        "average_rating": "",
    }
    attributes: dict[str, object] = {"attributes": list(plan.attributes)}
    human = None
    if wanted:
        attributes["instruction"] = f"Find me {', '.join(wanted)} {kind.query}"
        attributes["instruction_attributes"] = list(wanted)
        human = _human_instruction(asin, plan, wanted)
    nouns = (plan.brand, plan.material, *kind.noun.split())
    return SyntheticProduct(asin, record, attributes, nouns, human)


def _human_instruction(asin: str, plan: _Plan, wanted: Sequence[str]) -> dict[str, object]:
    random = Random(f"{asin}/{plan.brand}/{plan.dollars}")
    values = [random.choice(values) for values in plan.options.values()]
    start = random.choice(("i am looking for", "i want to buy", "i need"))
    return {
        "asin": asin,
        "instruction": f"{start} {plan.kind.query} with {' and '.join((*wanted, *values))}.",
        "attributes": list(plan.attributes),
        "options": values,
        "instruction_attributes": list(wanted),
        "instruction_options": values,
    }
