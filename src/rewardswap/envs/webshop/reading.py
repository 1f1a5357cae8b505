"""Products from the records of WebShop's files, and from the original's own loaded form."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from rewardswap.envs.webshop.files import COPY, is_strings
from rewardswap.envs.webshop.prices import parse_prices
from rewardswap.envs.webshop.products import Product

NO_ATTRIBUTES = ("DUMMY_ATTR",)
"""Attributes of a product that the table of attributes lacks."""

LONGEST_ASIN = 10
"""Characters; entries with a longer asin are not products."""


def read_products(
    records: Iterable[Mapping[str, object]],
    attributes: Mapping[str, object],
    items_path: Path,
    attributes_path: Path,
) -> dict[str, Product]:
    """Products by asin in the file's order, each asin once; raises ValueError naming the place."""
    products: dict[str, Product] = {}
    for place, record in enumerate(records):
        try:
            asin = _text(record, "asin")
            if asin == "nan" or len(asin) > LONGEST_ASIN or asin in products:
                continue
            read = _read_attributes(attributes.get(asin), attributes_path)
            products[asin] = _product(record, *read)
        except ValueError as fault:
            raise ValueError(f"{items_path}: entry {place}: {fault}; {COPY}") from fault
    if not products:
        raise ValueError(f"{items_path}: no entry is a product (asin of 1 to 10 signs); {COPY}")
    return products


def product_from_upstream(record: Mapping[str, object]) -> Product:
    """A product from the original's loaded form (Title, BulletPoints, Attributes, ...).

    Only what a reward looks at is taken; raises ValueError if a field is missing or wrong.
    """
    return Product(
        asin=_text(record, "asin"),
        name=_text(record, "Title"),
        category="",
        query=_text(record, "query"),
        product_category=_text(record, "product_category"),
        description=_text(record, "Description"),
        bullets=_texts(record, "BulletPoints"),
        options={},
        attributes=_texts(record, "Attributes"),
    )


def _product(
    record: Mapping[str, object],
    attributes: tuple[str, ...],
    instruction: str | None,
    wanted: tuple[str, ...],
) -> Product:
    small = record.get("small_description")
    return Product(
        asin=_text(record, "asin"),
        name=_text(record, "name"),
        category=_text(record, "category"),
        query=_text(record, "query").lower().strip(),
        product_category=_text(record, "product_category"),
        description=_text(record, "full_description"),
        bullets=(small,) if isinstance(small, str) else _texts(record, "small_description"),
        options=_options(record.get("customization_options")),
        attributes=attributes,
        pricing=parse_prices(_text(record, "pricing")) if record.get("pricing") else (100.0,),
        instruction=instruction,
        instruction_attributes=wanted,
    )


def _read_attributes(
    entry: object, path: Path
) -> tuple[tuple[str, ...], str | None, tuple[str, ...]]:
    """Attributes, synthetic instruction (if any) and the attributes that it asks for."""
    if entry is None:
        return NO_ATTRIBUTES, None, ()
    if not isinstance(entry, dict):
        raise ValueError(f"its entry in {path} is a {type(entry).__name__}, expected an object")
    try:
        attributes = _texts(entry, "attributes") if "attributes" in entry else NO_ATTRIBUTES
        if entry.get("instruction") is None:
            return attributes, None, ()
        wanted = _texts(entry, "instruction_attributes")
        if not wanted:
            raise ValueError("the instruction asks for no attribute ('instruction_attributes')")
        return attributes, _text(entry, "instruction"), wanted
    except ValueError as fault:
        raise ValueError(f"its entry in {path}: {fault}") from fault


def _options(entry: object) -> dict[str, tuple[str, ...]]:
    if not entry:
        return {}
    if not isinstance(entry, dict):
        raise ValueError(f"'customization_options' is a {type(entry).__name__}, expected an object")
    options: dict[str, tuple[str, ...]] = {}
    for name, choices in entry.items():
        if choices is None:
            continue
        if not isinstance(choices, list) or not all(isinstance(c, dict) for c in choices):
            raise ValueError(f"option {name!r} is no list of objects with 'value'")
        values = (_text(choice, "value").strip() for choice in choices)
        options[name.lower()] = tuple(value.replace("/", " | ").lower() for value in values)
    return options


def _text(record: Mapping[str, object], key: str) -> str:
    value = record.get(key)
    if not isinstance(value, str):
        raise ValueError(f"{key!r} is {_kind(record, key)}, expected a text")
    return value


def _texts(record: Mapping[str, object], key: str) -> tuple[str, ...]:
    value = record.get(key)
    if not is_strings(value):
        raise ValueError(f"{key!r} is {_kind(record, key)}, expected a list of texts")
    return tuple(value)


def _kind(record: Mapping[str, object], key: str) -> str:
    return f"a {type(record[key]).__name__}" if key in record else "missing"
