"""Where a visitor of the shop is."""

import json
from typing import NamedTuple

INDEX, RESULTS, ITEM, DONE = "index", "results", "item", "done"
"""Kinds of page, beside those named in `pages.SUB_PAGES`."""


class Place(NamedTuple):
    """All that the present page and those that can follow depend on, but for the goal.

    What makes no difference any more is empty: the results on the first page and after buying, and
    what only `text_rich` shows in the other modes.
    """

    page: str
    results: tuple[str, ...] = ()
    """Asins that the last search found, best first."""
    number: int = 0
    """Page of the results, from 1."""
    asin: str = ""
    """The product that is open, or was bought."""
    options: tuple[tuple[str, str], ...] = ()
    """Names and chosen values, sorted."""
    quotes: str = ""
    """The last query if it has a '"': its quoted words look chosen on a product's page."""
    visited: tuple[str, ...] = ()
    """Asins that were opened since the first page was last shown, sorted."""

    @property
    def key(self) -> str:
        """A text that is equal exactly for equal places."""
        return json.dumps(self, separators=(",", ":"))
