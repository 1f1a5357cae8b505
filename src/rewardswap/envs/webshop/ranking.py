"""The k highest sums of the scores of a query's terms, without adding them all up exactly.

First a bound on every document's sum, in float32, from scores and from the bytes of frequent terms.
Then the exact sums, in double, of the documents whose bound reaches what the k best of them have.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rewardswap.envs.webshop.bm25 import Saturation, score
from rewardswap.envs.webshop.frequent import STEPS
from rewardswap.envs.webshop.postings import Codes

FEW = 2500
"""Where the terms are in so many documents or fewer on average, adding all up is quicker."""
ROUNDING = 2.0**-23
"""More than each term can be wrong by in a bound, as a share of the bound."""
BLOCK = 256
"""Documents at most of which only the highest bound is looked at, to find one that k reach."""
BLOCKS = 8
"""Times k: how many blocks there are at least, if there are as many documents."""
CHUNK = 2**15
"""Documents whose bounds are added up while they lie in the processor's cache."""

Ranked = tuple[NDArray[np.int64], NDArray[np.float32]]


@dataclass(frozen=True, eq=False, slots=True)
class QueryTerm:
    """A term of the query and where it is."""

    documents: NDArray[np.int32]
    codes: Codes
    parts: NDArray[np.uint8] | None
    """Of a frequent term, see `FrequentTerms`."""
    peak: NDArray[np.float32]
    """One number: the highest saturation of the term."""
    weight: np.float32

    @property
    def most(self) -> float:
        """The highest score of the term in any document."""
        return score(self.peak, self.weight).item()

    def repeated(self, times: int) -> "QueryTerm":
        """The same term as often in the query."""
        return replace(self, weight=np.float32(times) * self.weight)


def rank(terms: Sequence[QueryTerm], size: int, saturation: Saturation, k: int) -> Ranked:
    """Documents and scores: the k best, those that tie with the last, and maybe more.

    `size` is the number of all documents; there must be a term.
    """
    if sum(len(term.documents) for term in terms) <= FEW * len(terms):
        return _add_all(terms, saturation)
    bounds = _add_bounds(terms, size, saturation)
    block = max(min(BLOCK, size // (BLOCKS * k)), 1)
    highest = np.maximum.reduceat(bounds, np.arange(0, size, block))
    first = _at_least(bounds, kth_highest(highest, k))
    bar = kth_highest(_add_exactly(terms, first, saturation), k)
    chosen = _at_least(bounds, bar * (1 - (len(terms) + 8) * ROUNDING))
    return chosen, _add_exactly(terms, chosen, saturation).astype(np.float32)


def _add_all(terms: Sequence[QueryTerm], saturation: Saturation) -> Ranked:
    documents = np.concatenate([term.documents for term in terms])
    codes = np.concatenate([term.codes for term in terms])
    weights = np.repeat([term.weight for term in terms], [len(term.codes) for term in terms])
    sums = np.bincount(documents, score(saturation(codes), weights))
    chosen = np.flatnonzero(sums)
    return chosen, sums[chosen].astype(np.float32)


def _add_bounds(
    terms: Sequence[QueryTerm], size: int, saturation: Saturation
) -> NDArray[np.float32]:
    """A bound on every document's sum; it can be too low by rounding only."""
    bounds = np.zeros(size, dtype=np.float32)
    frequent = []
    for term in terms:
        if term.parts is None:
            np.add.at(bounds, term.documents, saturation.scores(term.codes, term.weight))
        else:
            frequent.append((term.parts, np.float32(term.most / STEPS)))
    added = np.empty(CHUNK, dtype=np.float32)
    for start in range(0, size if frequent else 0, CHUNK):
        chunk = bounds[start : start + CHUNK]
        for parts, part in frequent:
            some = added[: len(chunk)]
            some[:] = parts[start : start + CHUNK]
            some *= part
            chunk += some
    return bounds


def _at_least(bounds: NDArray[np.float32], lowest: float) -> NDArray[np.int64]:
    """The documents, ascending, that have a term and whose bound is at least the lowest."""
    return np.flatnonzero(bounds >= lowest if lowest > 0 else bounds)


def _add_exactly(
    terms: Sequence[QueryTerm], chosen: NDArray[np.int64], saturation: Saturation
) -> NDArray[np.float64]:
    """The sums of the chosen documents, given in ascending order."""
    sums = np.zeros(len(chosen), dtype=np.float64)
    numbers = chosen.astype(np.int32)
    for term in terms:
        places = np.searchsorted(term.documents, numbers)
        hits = np.flatnonzero(term.documents.take(places, mode="clip") == numbers)
        sums[hits] += score(saturation(term.codes[places[hits]]), term.weight)
    return sums


def kth_highest(values: NDArray[np.floating], k: int) -> float:
    """0 if there are fewer than k."""
    if len(values) < k:
        return 0.0
    return float(np.partition(values, len(values) - k)[len(values) - k])
