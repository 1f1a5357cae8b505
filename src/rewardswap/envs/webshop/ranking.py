"""The k highest sums of the scores of a query's terms, without adding them all up."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rewardswap.envs.webshop.bm25 import Saturation, score
from rewardswap.envs.webshop.postings import Codes

SLACK = 1 - 1e-6
"""Sums that differ by less than this factor may be equal in float32."""
MANY = 2**14
"""With so many scores to add up, it is worth while to look for what can be skipped."""
LOOK_UP = 8
"""How much more it costs to look a term up for a document than to add it to one."""
PROBES = 2
"""How many times k documents are looked at for that."""
FEW_TERMS = 50
"""With more terms left, looking for a higher bar takes too long."""

Ranked = tuple[NDArray[np.int64], NDArray[np.float32]]


@dataclass(frozen=True, eq=False, slots=True)
class QueryTerm:
    """A term of the query and where it is."""

    documents: NDArray[np.int32]
    codes: Codes
    weight: np.float32
    most: float
    """The highest score of the term in any document."""


def rank(terms: Sequence[QueryTerm], size: int, saturation: Saturation, k: int) -> Ranked:
    """Documents and scores: the k best, those that tie with the last, and maybe more.

    `size` is the number of all documents; there must be a term.
    """
    if sum(len(term.documents) for term in terms) <= MANY:
        return _add_all(terms, saturation)
    return _Ranking(terms, size, saturation, k).best()


def _add_all(terms: Sequence[QueryTerm], saturation: Saturation) -> Ranked:
    documents = np.concatenate([term.documents for term in terms])
    codes = np.concatenate([term.codes for term in terms])
    weights = np.repeat([term.weight for term in terms], [len(term.codes) for term in terms])
    sums = np.bincount(documents, score(saturation(codes), weights))
    chosen = np.flatnonzero(sums)
    return chosen, sums[chosen].astype(np.float32)


class _Ranking:
    """Adds up the scores of a query's terms, those that can add most first.

    `bar` is a sum that at least k documents reach. Once the terms that are left cannot lift a
    document above it that has none of the terms before, they are only looked up for the documents
    that can still get there.
    """

    def __init__(
        self, terms: Sequence[QueryTerm], size: int, saturation: Saturation, k: int
    ) -> None:
        self._terms = sorted(terms, key=lambda term: -term.most)
        self._sums = np.zeros(size, dtype=np.float64)
        self._saturation = saturation
        self._k = k
        self._bar = 0.0
        self._level = 0.0
        """A sum of the terms added so far that at least k documents reach."""
        most = [term.most for term in reversed(self._terms)]
        self._rest = np.cumsum([0.0, *most])[::-1].tolist()
        """What the terms from each place on can add."""
        sizes = [len(term.documents) for term in reversed(self._terms)]
        self._left = np.cumsum([0, *sizes])[::-1].tolist()
        """How many documents these are in, each term counted."""

    def best(self) -> Ranked:
        taken = 0
        while taken < len(self._terms) and not self._few_are_left(taken):
            self._add_everywhere(taken)
            taken += 1
        chosen = np.flatnonzero(self._can_get_there(taken))
        reached = self._sums[chosen]
        for place in range(taken, len(self._terms)):
            self._add(place, chosen, reached)
            self._bar = max(self._bar, kth_highest(reached, self._k))
            keep = reached >= self._bar * SLACK - self._rest[place + 1]
            chosen, reached = chosen[keep], reached[keep]
        return chosen, reached.astype(np.float32)

    def _can_get_there(self, place: int) -> NDArray[np.bool_]:
        lowest = self._bar * SLACK - self._rest[place]
        return self._sums >= lowest if lowest > 0 else self._sums > 0

    def _few_are_left(self, place: int) -> bool:
        """Whether looking the next term up is cheaper than adding it to every document with it."""
        if self._rest[place] >= self._bar * SLACK:
            return False
        few = len(self._terms[place].documents) / LOOK_UP
        return int(np.count_nonzero(self._can_get_there(place))) <= few

    def _add_everywhere(self, place: int) -> None:
        term = self._terms[place]
        documents = term.documents.astype(np.intp)
        raised = self._sums[documents]
        raised += self._saturation.scores(term.codes, term.weight)
        self._sums[documents] = raised
        high = np.flatnonzero(raised > self._level)
        wanted = PROBES * self._k
        if len(high) > wanted:
            high = high[np.argpartition(raised[high], len(high) - wanted)[-wanted:]]
        self._level = max(self._level, kth_highest(raised[high], self._k))
        self._bar = max(self._bar, self._level)
        few_terms = len(self._terms) - place <= FEW_TERMS
        if few_terms and self._left[place + 1] > MANY and len(high) >= self._k:
            self._probe(place + 1, np.sort(documents[high]))

    def _probe(self, start: int, chosen: NDArray[np.int64]) -> None:
        """Raises the bar to what the chosen documents reach with the terms from `start` on."""
        reached = self._sums[chosen]
        for place in range(start, len(self._terms)):
            self._add(place, chosen, reached)
        self._bar = max(self._bar, kth_highest(reached, self._k))

    def _add(self, place: int, chosen: NDArray[np.int64], reached: NDArray[np.float64]) -> None:
        """Adds the term's score to those of the chosen documents, given in ascending order."""
        term = self._terms[place]
        places = np.searchsorted(term.documents, chosen.astype(np.int32))
        hits = np.flatnonzero(term.documents.take(places, mode="clip") == chosen)
        reached[hits] += score(self._saturation(term.codes[places[hits]]), term.weight)


def kth_highest(values: NDArray[np.floating], k: int) -> float:
    """0 if there are fewer than k."""
    if len(values) < k:
        return 0.0
    return float(np.partition(values, len(values) - k)[len(values) - k])
