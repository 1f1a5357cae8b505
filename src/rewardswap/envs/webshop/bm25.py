"""BM25 as Lucene computes it: float32 throughout, document lengths in one byte.

The score of a term in a document is w - w / (1 + tf / (k1 ((1 - b) + b dl / avgdl))), with the
weight w = (times in the query) * idf.
"""

import math
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

K1 = np.float32(0.9)
B = np.float32(0.4)
FREE = 24
"""Lengths up to here have a byte of their own; above, four significant bits are kept."""
COUNTS_IN_TABLE = 256
"""Counts of a term in a document below this are looked up, see `Saturation`."""


def length_to_byte(length: int) -> int:
    """Lucene's SmallFloat.intToByte4."""
    if length < FREE:
        return length
    rest = length - FREE
    shift = max(rest.bit_length() - 4, 0)
    if rest < 8:
        return FREE + rest
    return FREE + ((shift + 1) << 3 | (rest >> shift & 7))


def byte_to_length(byte: int) -> int:
    """The shortest length with this byte."""
    if byte < FREE:
        return byte
    exponent, fraction = divmod(byte - FREE, 8)
    return FREE + (fraction if exponent == 0 else (fraction | 8) << (exponent - 1))


LENGTHS = np.array([byte_to_length(byte) for byte in range(256)], dtype=np.int64)
"""Of each byte, the shortest length that has it."""


def lengths_to_bytes(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """`length_to_byte` of many."""
    return np.searchsorted(LENGTHS, lengths, side="right") - 1


def inverse_document_frequency(documents: int, with_term: int) -> np.float32:
    """How telling a term is that `with_term` of `documents` contain."""
    return np.float32(math.log(1 + (documents - with_term + 0.5) / (with_term + 0.5)))


class Saturation:
    """1 + tf / (k1 ((1 - b) + b dl / avgdl)) of codes tf * 256 + length byte."""

    def __init__(self, mean_length: float) -> None:
        lengths = LENGTHS.astype(np.float32)
        ones = np.ones(256, dtype=np.float32)
        relative = B * lengths / np.float32(mean_length)
        self._norms = ones / (K1 * ((np.float32(1) - B) + relative))
        self._table = self._compute(np.arange(COUNTS_IN_TABLE * 256, dtype=np.uint32))

    def __call__(self, codes: NDArray[np.unsignedinteger]) -> NDArray[np.float32]:
        if codes.dtype == np.uint16:
            return self._table.take(codes)
        return self._compute(codes)

    def scores(self, codes: NDArray[np.unsignedinteger], weight: np.float32) -> NDArray[np.float32]:
        """The score of a term with this weight under each code."""
        if codes.dtype == np.uint16 and len(codes) > len(self._table):
            return score(self._table, weight).take(codes)
        return score(self(codes), weight)

    def _compute(self, codes: NDArray[np.unsignedinteger]) -> NDArray[np.float32]:
        counts = (codes >> 8).astype(np.float32)
        return np.float32(1) + counts * self._norms.take(codes & 255)


Weight = TypeVar("Weight", np.float32, NDArray[np.float32])


def score(saturation: NDArray[np.float32], weight: Weight) -> NDArray[np.float32]:
    """What a term adds; never falls when the saturation rises, rounding included."""
    return weight - weight / saturation
