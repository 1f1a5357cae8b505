"""How numbers of a row are written for a reader."""

from collections.abc import Callable, Mapping
from typing import Any

from rewardswap.report.page import percent, signed

NOTHING = "–"
Show = Callable[[Mapping[str, Any]], str]


def share(name: str, *, plain: bool = False) -> Show:
    """A share in percent, with its interval if the row has one; `plain` leaves that out."""

    def show(row: Mapping[str, Any]) -> str:
        if row[name] is None:
            return NOTHING
        low = None if plain else row.get(f"{name}_low")
        said = percent(row[name])
        return said if low is None else f"{said} [{100 * low:.1f}, {100 * row[name + '_high']:.1f}]"

    return show


def points(name: str) -> Show:
    """A difference of shares in percentage points, with its interval."""
    return change(name, 100.0, 1)


def change(name: str, unit: float = 1.0, decimals: int = 2) -> Show:
    """A difference times `unit`, signed, with its interval."""

    def show(row: Mapping[str, Any]) -> str:
        if row[name] is None:
            return NOTHING
        ends = [row[f"{name}_low"], row[f"{name}_high"]]
        said = [signed(unit * value, decimals) for value in (row[name], *ends) if value is not None]
        return said[0] if len(said) == 1 else f"{said[0]} [{said[1]}, {said[2]}]"

    return show


def number(name: str, decimals: int) -> Show:
    """A number, thousands apart."""

    def show(row: Mapping[str, Any]) -> str:
        if row[name] is None:
            return NOTHING
        return f"{row[name]:,.{decimals}f}"

    return show


def p_value(name: str) -> Show:
    """A p value to three decimals."""

    def show(row: Mapping[str, Any]) -> str:
        if row[name] is None:
            return NOTHING
        return "< .001" if row[name] < 0.001 else f"{row[name]:.3f}".lstrip("0")

    return show
