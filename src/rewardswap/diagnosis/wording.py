"""Numbers as sentences say them."""

from rewardswap.statistics import Interval


def percent(share: float) -> str:
    """A share as 12.3%."""
    return f"{share:.1%}"


def points(difference: float) -> str:
    """A difference of shares as signed points."""
    return f"{100 * difference:+.1f}"


def within(interval: Interval) -> str:
    """An interval of shares."""
    return f"[{interval[0]:.1%}, {interval[1]:.1%}]"


def short(value: float) -> str:
    """A number with three digits that count."""
    return f"{value:.3g}"
