"""A bar for what takes a while, on a terminal only (ours)."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import track

Item = TypeVar("Item")


def watched(items: Iterable[Item], what: str, total: int) -> Iterator[Item]:
    """The items, with a bar on stderr that tells how many of `total` are done."""
    console = Console(stderr=True)
    yield from track(
        items, what, total, console=console, transient=True, disable=not console.is_terminal
    )
