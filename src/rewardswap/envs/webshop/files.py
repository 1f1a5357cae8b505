"""Reading WebShop's JSON files: every fault is a ValueError with the path and the way out."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple, TypeGuard, get_args

from rewardswap.envs.webshop.json_list import is_list, read_elements

SETS = {
    "small": ("items_shuffle_1000.json", "items_ins_v2_1000.json"),
    "full": ("items_shuffle.json", "items_ins_v2.json"),
}
"""By size: products, and attributes with synthetic instructions by asin."""

HUMAN = "items_human_ins.json"
"""Human instructions by asin."""

NOUNS = "name_nouns*.json"
"""Nouns of every product's name by asin."""

NOUNS_SOURCE = "_source_of_nouns"
"""Key beside the asins, and longer than any, under which such a file says what made it (ours)."""

SET_UP = "get it with WebShop's own setup.sh, which fills the folder data/"
COPY = "copy the file again or delete it and run WebShop's setup.sh once more"

Size = Literal["auto", "small", "full"]
"""Which set of products: of 1,000, of all, or `auto`: the one that is there."""


class NounTable(NamedTuple):
    """Nouns of products' names and what found them."""

    nouns: dict[str, tuple[str, ...]]
    """By asin."""
    source: str
    """Program and model with their versions; "unknown" where the file does not say."""


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """What is wrong with a file while it is read, as a ValueError with the way out."""
    try:
        yield
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


def read_json(path: Path) -> object:
    """The content of a JSON file; raises ValueError if it is missing, cut or no JSON."""
    with _refusing(path):
        content: object = json.loads(path.read_text(encoding="utf-8"))
    return content


def read_table(path: Path) -> dict[str, object]:
    """A JSON object by asin; raises ValueError if the file holds anything else."""
    content = read_json(path)
    if not isinstance(content, dict):
        kind = type(content).__name__
        raise ValueError(f"{path}: holds a {kind}, expected an object by asin; {COPY}")
    return content


def read_records(path: Path) -> Iterator[dict[str, object]]:
    """The objects of a JSON list one after another; raises ValueError if it is anything else.

    An empty list is refused too. What is wrong further on is said when it is reached.
    """
    with _refusing(path):
        listed = is_list(path)
    if not listed:
        kind = type(read_json(path)).__name__
        raise ValueError(f"{path}: holds a {kind}, expected a list of products; {COPY}")
    place = -1
    with _refusing(path):
        for place, record in enumerate(read_elements(path)):
            if not isinstance(record, dict):
                kind = type(record).__name__
                raise ValueError(f"{path}: entry {place} is a {kind}, expected an object; {COPY}")
            yield record
    if place < 0:
        raise ValueError(f"{path}: the list of products is empty; {COPY}")


def is_strings(value: object) -> TypeGuard[list[str]]:
    """Whether a JSON value is a list of nothing but strings."""
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def find_set(folder: Path, size: Size = "auto") -> tuple[Path, Path]:
    """Paths of the products and attributes of the set of this size.

    Raises ValueError if the folder lacks it or has products without their attributes, and with
    `auto` if it has both sets: which one is taken decides every number.
    """
    if size not in get_args(Size):
        raise ValueError(f"unknown size {size!r}, expected one of {', '.join(get_args(Size))}")
    wanted = list(SETS.values()) if size == "auto" else [SETS[size]]
    found = [names for names in wanted if (folder / names[0]).is_file()]
    if not found:
        if not folder.is_dir():
            raise ValueError(f"{folder}: is no folder; {SET_UP}")
        raise ValueError(f"{folder}: has none of {', '.join(n for n, _ in wanted)}; {SET_UP}")
    if len(found) > 1:
        names = " and ".join(items for items, _ in found)
        raise ValueError(f"{folder}: has both {names}; choose the size, small or full")
    items, attributes = found[0]
    if not (folder / attributes).is_file():
        raise ValueError(f"{folder}: has {items} without {attributes}; {SET_UP}")
    return folder / items, folder / attributes


def find_nouns(folder: Path) -> Path:
    """Path of the one table of nouns; raises ValueError if there is none or more than one."""
    found = sorted(folder.glob(NOUNS))
    if not found:
        raise ValueError(f"{folder}: has no {NOUNS}; {_make_nouns(folder)}")
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise ValueError(f"{folder}: has several {NOUNS} ({names}); keep the one of its products")
    return found[0]


def read_nouns(path: Path, asins: Iterable[str]) -> NounTable:
    """Nouns of the given products; raises ValueError if one has none of its own."""
    table = read_table(path)
    nouns: dict[str, tuple[str, ...]] = {}
    for asin in asins:
        words = table.get(asin)
        if not is_strings(words):
            raise ValueError(
                f"{path}: has no list of nouns for product {asin!r}; {_make_nouns(path.parent)}"
            )
        nouns[asin] = tuple(words)
    source = table.get(NOUNS_SOURCE, f"unknown ({path.name} does not say)")
    if not isinstance(source, str):
        raise ValueError(f"{path}: {NOUNS_SOURCE!r} is no text; {_make_nouns(path.parent)}")
    return NounTable(nouns, source)


def _make_nouns(folder: Path) -> str:
    return f"make it with spaCy: `rewardswap data prepare webshop --data {folder}`"
