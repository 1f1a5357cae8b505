"""Reading WebShop's JSON files: every fault is a ValueError with the path and the way out."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TypeGuard

ITEMS = ("items_shuffle_1000.json", "items_shuffle.json")
"""Products: the small set's file name, then the full set's."""

ATTRIBUTES = ("items_ins_v2_1000.json", "items_ins_v2.json")
"""Attributes and synthetic instructions by asin, in the order of ITEMS."""

HUMAN = "items_human_ins.json"
"""Human instructions by asin."""

NOUNS = "name_nouns*.json"
"""Nouns of every product's name by asin."""

SET_UP = "get it with WebShop's own setup.sh, which fills the folder data/"
COPY = "copy the file again or delete it and run WebShop's setup.sh once more"
MAKE_NOUNS = (
    'write {"<asin>": [lower-cased tokens of the name that spaCy\'s small English model tags NOUN '
    "or PROPN, duplicates kept]} for every product of the folder as name_nouns.json beside it"
)


def read_json(path: Path) -> object:
    """The content of a JSON file; raises ValueError if it is missing, cut or no JSON."""
    try:
        content: object = json.loads(path.read_text(encoding="utf-8"))
    except OSError as fault:
        raise ValueError(f"{path}: cannot be read ({fault.strerror}); {SET_UP}") from fault
    except UnicodeDecodeError as fault:
        raise ValueError(f"{path}: no UTF-8 text at byte {fault.start}; {COPY}") from fault
    except json.JSONDecodeError as fault:
        size = path.stat().st_size
        raise ValueError(
            f"{path}: no JSON or cut short ({size} bytes; {fault.msg} at character {fault.pos}); "
            f"{COPY}"
        ) from fault
    except RecursionError as fault:
        raise ValueError(f"{path}: nested too deeply for WebShop's data; {COPY}") from fault
    return content


def read_table(path: Path) -> dict[str, object]:
    """A JSON object by asin; raises ValueError if the file holds anything else."""
    content = read_json(path)
    if not isinstance(content, dict):
        kind = type(content).__name__
        raise ValueError(f"{path}: holds a {kind}, expected an object by asin; {COPY}")
    return content


def read_records(path: Path) -> list[dict[str, object]]:
    """A JSON list of objects; raises ValueError if it is anything else or empty."""
    content = read_json(path)
    if not isinstance(content, list):
        kind = type(content).__name__
        raise ValueError(f"{path}: holds a {kind}, expected a list of products; {COPY}")
    if not content:
        raise ValueError(f"{path}: the list of products is empty; {COPY}")
    for place, record in enumerate(content):
        if not isinstance(record, dict):
            kind = type(record).__name__
            raise ValueError(f"{path}: entry {place} is a {kind}, expected an object; {COPY}")
    return content


def is_strings(value: object) -> TypeGuard[list[str]]:
    """Whether a JSON value is a list of nothing but strings."""
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def find_set(folder: Path) -> tuple[Path, Path]:
    """Paths of products and attributes: the small set if the folder has it, else the full one.

    Raises ValueError if the folder has neither, or products without their attributes.
    """
    for items, attributes in zip(ITEMS, ATTRIBUTES, strict=True):
        if (folder / items).is_file():
            if not (folder / attributes).is_file():
                raise ValueError(f"{folder}: has {items} without {attributes}; {SET_UP}")
            return folder / items, folder / attributes
    raise ValueError(f"{folder}: has none of {', '.join(ITEMS)}; {SET_UP}")


def find_nouns(folder: Path) -> Path:
    """Path of the one table of nouns; raises ValueError if there is none or more than one."""
    found = sorted(folder.glob(NOUNS))
    if not found:
        raise ValueError(f"{folder}: has no {NOUNS}; {MAKE_NOUNS}")
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise ValueError(f"{folder}: has several {NOUNS} ({names}); keep the one of its products")
    return found[0]


def read_nouns(path: Path, asins: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Nouns by asin for the given products; raises ValueError if one has none of its own."""
    table = read_table(path)
    nouns: dict[str, tuple[str, ...]] = {}
    for asin in asins:
        words = table.get(asin)
        if not is_strings(words):
            raise ValueError(f"{path}: has no list of nouns for product {asin!r}; {MAKE_NOUNS}")
        nouns[asin] = tuple(words)
    return nouns
