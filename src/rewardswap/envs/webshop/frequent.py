"""Bounds on the scores of terms that are in many documents, one byte for every document.

Whole arrays of bytes add up faster than long lists of documents. What they add up to tells which
few documents have to be scored.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rewardswap.envs.webshop.bm25 import Saturation

SHARE = 8
"""A term is frequent if it is in more than one of so many documents."""
STEPS = 255
"""So many parts has a term's highest score."""
MARGIN = 0.01
"""Parts; more than the rounding of scores in float32 can make of terms that are so frequent."""


@dataclass(frozen=True, eq=False, slots=True)
class FrequentTerms:
    """For each frequent term and document, how high the term's score can be there."""

    terms: NDArray[np.int32]
    """Their numbers, ascending."""
    parts: NDArray[np.uint8]
    """Term by term, of each document: parts of the term's highest score, 0 without the term."""

    @classmethod
    def of(
        cls,
        starts: NDArray[np.int64],
        documents: NDArray[np.int32],
        codes: NDArray[np.unsignedinteger],
        saturation: Saturation,
        size: int,
    ) -> "FrequentTerms":
        """Those of the postings of `size` documents."""
        terms = np.flatnonzero(np.diff(starts) * SHARE > size).astype(np.int32)
        parts = np.zeros((len(terms), size), dtype=np.uint8)
        for row, term in zip(parts, terms.tolist(), strict=True):
            place = slice(starts[term], starts[term + 1])
            reached = 1 - 1 / saturation(codes[place]).astype(np.float64)
            share = np.ceil(STEPS * reached / reached.max() + MARGIN)
            row[documents[place]] = np.minimum(share, STEPS)
        return cls(terms, parts.reshape(-1))

    def find(self, term: int) -> NDArray[np.uint8] | None:
        """The parts of a term for all documents; None if the term is not frequent."""
        place = int(np.searchsorted(self.terms, term))
        if place == len(self.terms) or self.terms[place] != term:
            return None
        size = len(self.parts) // len(self.terms)
        return self.parts[place * size : (place + 1) * size]
