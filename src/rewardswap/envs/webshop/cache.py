"""The search index of a shop, kept between starts where building it takes a while (ours)."""

import os
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path

from platformdirs import user_cache_path

from rewardswap.envs.webshop.products import Product
from rewardswap.envs.webshop.progress import watched
from rewardswap.envs.webshop.search import SearchIndex

VARIABLE = "REWARDSWAP_CACHE"
"""Environment variable: a folder for indexes, or OFF."""
OFF = "off"
KEPT_FROM = 5000
"""Products; the index of a smaller shop is built in memory, in about a second at most."""


def open_index(
    products: Mapping[str, Product], source: Path, cache: Path | str | None
) -> SearchIndex:
    """The search index of products that come from a file.

    From KEPT_FROM products on it is kept in a folder (`cache_folder`), never beside the source. A
    file there that was not made for these very products or is damaged is written anew. What cannot
    be written is a warning; the index is then in memory only.
    """

    def documents() -> Iterator[tuple[str, str]]:
        return ((asin, product.contents) for asin, product in products.items())

    def shown() -> Iterator[tuple[str, str]]:
        return watched(documents(), "indexing products", len(products))

    if len(products) < KEPT_FROM:
        return SearchIndex.build(documents())
    folder = cache_folder(cache)
    if folder is None:
        return SearchIndex.build(shown())
    name = blake2b(os.fsencode(source.resolve()), digest_size=8).hexdigest()
    return SearchIndex.cached(folder / f"webshop-{name}.index", documents, shown)


def cache_folder(cache: Path | str | None) -> Path | None:
    """Where indexes are kept: in `cache` if given, else where $REWARDSWAP_CACHE says, else in the
    user's cache folder of the platform; None, so nowhere, if that is "off"."""
    chosen = cache or os.environ.get(VARIABLE) or user_cache_path("rewardswap", appauthor=False)
    return None if chosen == OFF else Path(chosen).expanduser()
