"""Names as they are said in errors: the unknown one, the nearest known one, the whole path."""

import difflib
from collections.abc import Iterable, Mapping
from typing import TypeVar

Known = TypeVar("Known")


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """One line that names the unknown thing, the nearest known one, and all of them."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    return f"unknown {what} {name!r}{hint} Known: {', '.join(names)}"


def named(what: str, name: str, known: Mapping[str, Known]) -> Known:
    """What a name stands for; ValueError names the nearest known one."""
    if name not in known:
        raise ValueError(unknown(what, name, known))
    return known[name]


def dotted(section: str, message: str, settings: Iterable[str]) -> str:
    """What a section's check says, with its setting named from the top."""
    first, _, rest = message.partition(" ")
    word = first.replace("`", "")
    return f"{section}.{word} {rest}" if word.strip(":") in settings else f"{section}: {message}"
