"""What a document is made of: written by a program, it may since have been changed by a person."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MOST = 1e15
"""Numbers of a record are smaller: beyond it tables and plots say nothing (ours)."""
ANY = object()
"""Whatever it is."""


@dataclass(frozen=True)
class Maybe:
    """Something of this shape, or null."""

    shape: Any


@dataclass(frozen=True)
class Each:
    """A table of any names, every part of which has this shape."""

    shape: Any


def misfit(value: object, shape: Any, place: str = "") -> str | None:
    """The dotted name of the first part that has another shape, none where all fit.

    A shape is a type (`float`: any finite number), a list of one shape, a table of shapes by name
    (names that end in `?` may be missing), `Maybe`, `Each` or `ANY`.
    """
    if isinstance(shape, Maybe):
        return None if value is None else misfit(value, shape.shape, place)
    if isinstance(shape, list):
        if not isinstance(value, list):
            return place or "content"
        return _first({str(n): (part, shape[0]) for n, part in enumerate(value)}, place)
    if isinstance(shape, Mapping | Each):
        return _table(value, shape, place)
    return None if shape is ANY or _is_a(shape, value) else place or "content"


def _table(value: object, shape: Mapping[str, Any] | Each, place: str) -> str | None:
    if not isinstance(value, Mapping):
        return place or "content"
    if isinstance(shape, Each):
        return _first({name: (part, shape.shape) for name, part in value.items()}, place)
    wanted = {name.removesuffix("?"): part for name, part in shape.items()}
    missing = [name for name in shape if not name.endswith("?") and name not in value]
    if missing:
        return _dotted(place, missing[0])
    return _first({n: (value[n], part) for n, part in wanted.items() if n in value}, place)


def _first(parts: Mapping[str, tuple[object, Any]], place: str) -> str | None:
    found = (misfit(part, shape, _dotted(place, name)) for name, (part, shape) in parts.items())
    return next((name for name in found if name is not None), None)


def _dotted(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _is_a(kind: type, value: object) -> bool:
    if kind is float:
        return _is_number(value)
    return type(value) is kind and (kind is not int or _is_number(value))


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= MOST  # false for NaN
