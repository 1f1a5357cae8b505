"""Which document contains which term how often: collected document by document, kept by term."""

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rewardswap.envs.webshop.analyzer import to_term
from rewardswap.envs.webshop.bm25 import Saturation, lengths_to_bytes
from rewardswap.envs.webshop.frequent import FrequentTerms
from rewardswap.envs.webshop.strings import SortedStrings, code_point_order
from rewardswap.envs.webshop.words import split_words

BATCH = 2**20
"""Words, or pairs of a document and a term, that are handled at once."""
WORDS_REMEMBERED = 2**20
NOT_INDEXED = -1

Codes = NDArray[np.unsignedinteger]


@dataclass(frozen=True, eq=False, slots=True)
class Postings:
    """The documents of each term. Documents are numbered in the order of their ids."""

    terms: SortedStrings
    starts: NDArray[np.int64]
    """Where the documents of each term start in the two arrays below, and where all end."""
    documents: NDArray[np.int32]
    """Ascending for each term."""
    codes: Codes
    """For each, the term's count * 256 + the byte of the document's length; 16 or 32 bits."""
    peaks: NDArray[np.float32]
    """The highest saturation of each term."""
    frequent: FrequentTerms
    filled: int
    """How many documents have a term at all: the N of BM25."""
    mean_length: float
    """Of these, in float32."""

    def of(self, term: int) -> tuple[NDArray[np.int32], Codes]:
        place = slice(self.starts[term], self.starts[term + 1])
        return self.documents[place], self.codes[place]


class _TermNumbers(dict[str, int]):
    """Word to the number of its term, NOT_INDEXED if it has none; forgets when it gets large."""

    def __init__(self) -> None:
        self.of_term: dict[str, int] = {}

    def __missing__(self, word: str) -> int:
        term = to_term(word)
        number = NOT_INDEXED
        if term is not None:
            number = self.of_term.setdefault(term, len(self.of_term))
        if len(self) >= WORDS_REMEMBERED:
            self.clear()
        self[word] = number
        return number


class Collector:
    """Takes documents one at a time and keeps two to six bytes for each of their terms."""

    def __init__(self) -> None:
        self._numbers = _TermNumbers()
        self._words = array("i")
        self._word_counts = array("q")
        self._terms: list[NDArray[np.int32]] = []
        self._codes: list[Codes] = []
        self._row_lengths: list[NDArray[np.int64]] = []
        self._total_length = 0

    def add(self, contents: str) -> None:
        words = split_words(contents)
        self._words.extend(map(self._numbers.__getitem__, words))
        self._word_counts.append(len(words))
        if len(self._words) >= BATCH:
            self._flush()

    def finish(self, ids: list[str]) -> tuple[SortedStrings, Postings]:
        """The sorted ids, and the postings with documents numbered by them."""
        self._flush()
        order = code_point_order(ids)
        for before, after in pairwise(order):
            if ids[before] == ids[after]:
                raise ValueError(f"two documents with the id {ids[after]!r}")
        table = SortedStrings.of(ids[place] for place in order)
        names = list(self._numbers.of_term)
        self._numbers = _TermNumbers()
        by_name = code_point_order(names)
        renumber = np.empty(len(names), dtype=np.int32)
        renumber[by_name] = np.arange(len(names), dtype=np.int32)
        lengths = np.concatenate([np.zeros(0, dtype=np.int64), *self._row_lengths])
        filled = int(np.count_nonzero(lengths))
        mean = float(np.float32(self._total_length / filled)) if filled else 1.0
        rows = _Rows(lengths, _join(self._terms, np.int32), _join(self._codes, self._code_type()))
        documents, codes, starts = _by_term(rows, order, renumber)
        saturation = Saturation(mean)
        peaks = _peaks(codes, starts, saturation)
        frequent = FrequentTerms.of(starts, documents, codes, saturation, len(ids))
        terms = SortedStrings.of(names[place] for place in by_name)
        return table, Postings(terms, starts, documents, codes, peaks, frequent, filled, mean)

    def _code_type(self) -> type[np.uint16] | type[np.uint32]:
        return np.uint16 if all(part.dtype == np.uint16 for part in self._codes) else np.uint32

    def _flush(self) -> None:
        numbers = np.array(self._words, dtype=np.int32)
        counts = np.array(self._word_counts, dtype=np.int64)
        owners = np.repeat(np.arange(len(counts)), counts)
        indexed = numbers != NOT_INDEXED
        owners, numbers = owners[indexed], numbers[indexed]
        lengths = np.bincount(owners, minlength=len(counts))
        pairs = np.sort(owners << 32 | numbers)
        first = np.flatnonzero(_changes(pairs))
        repeats = np.diff(first, append=len(pairs))
        pairs = pairs[first]
        codes = repeats << 8 | lengths_to_bytes(lengths)[pairs >> 32]
        wide = len(codes) > 0 and codes.max() >= 2**16
        self._terms.append((pairs & 0x7FFFFFFF).astype(np.int32))
        self._codes.append(codes.astype(np.uint32 if wide else np.uint16))
        self._row_lengths.append(np.bincount(pairs >> 32, minlength=len(counts)))
        self._total_length += len(numbers)
        self._words, self._word_counts = array("i"), array("q")


@dataclass(frozen=True, eq=False, slots=True)
class _Rows:
    """The terms of each document, in the order in which the documents came."""

    lengths: NDArray[np.int64]
    terms: NDArray[np.int32]
    codes: Codes


def _by_term(
    rows: _Rows, order: NDArray[np.int64], renumber: NDArray[np.int32]
) -> tuple[NDArray[np.int32], Codes, NDArray[np.int64]]:
    """Turns the table: documents in the given order, terms with their new numbers."""
    starts = np.zeros(len(renumber) + 1, dtype=np.int64)
    for batch in _slices(len(rows.terms)):
        numbers = renumber[rows.terms[batch]]
        starts[1:] += np.bincount(numbers, minlength=len(renumber))
    np.cumsum(starts, out=starts)
    documents = np.empty(len(rows.terms), dtype=np.int32)
    codes = np.empty(len(rows.terms), dtype=rows.codes.dtype)
    free = starts[:-1].copy()
    row_starts = np.cumsum(rows.lengths) - rows.lengths
    for batch in _batches(rows.lengths[order]):
        chosen = order[batch]
        lengths = rows.lengths[chosen]
        owners = np.repeat(np.arange(batch.start, batch.stop), lengths)
        shifts = row_starts[chosen] - (np.cumsum(lengths) - lengths)
        places = np.repeat(shifts, lengths) + np.arange(len(owners))
        terms = renumber[rows.terms[places]].astype(np.int64)
        keys = np.sort(terms << 32 | np.arange(len(owners)))
        numbers, sources = keys >> 32, keys & 0xFFFFFFFF
        first = np.flatnonzero(_changes(numbers))
        sizes = np.diff(first, append=len(numbers))
        targets = np.repeat(free[numbers[first]] - first, sizes) + np.arange(len(owners))
        documents[targets] = owners[sources]
        codes[targets] = rows.codes[places[sources]]
        free[numbers[first]] += sizes
    return documents, codes, starts


def _peaks(codes: Codes, starts: NDArray[np.int64], saturation: Saturation) -> NDArray[np.float32]:
    peaks = np.empty(len(starts) - 1, dtype=np.float32)
    for batch in _batches(np.diff(starts)):
        part = slice(starts[batch.start], starts[batch.stop])
        offsets = starts[batch] - starts[batch.start]
        peaks[batch] = np.maximum.reduceat(saturation(codes[part]), offsets)
    return peaks


def _changes(values: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Whether each value differs from the one before."""
    changes = np.ones(len(values), dtype=np.bool_)
    changes[1:] = values[1:] != values[:-1]
    return changes


def _slices(size: int) -> Iterable[slice]:
    return (slice(start, min(start + BATCH, size)) for start in range(0, size, BATCH))


def _batches(sizes: NDArray[np.int64]) -> Iterable[slice]:
    """Runs of things of these sizes, each of about BATCH in all and at least one thing."""
    ends = np.cumsum(sizes)
    start = 0
    while start < len(sizes):
        done = ends[start - 1] if start else 0
        stop = max(int(np.searchsorted(ends, done + BATCH, side="right")), start + 1)
        yield slice(start, stop)
        start = stop


def _join(parts: list[Any], dtype: type) -> Any:
    """Concatenates arrays and lets each go as soon as it is copied."""
    joined: NDArray[Any] = np.empty(sum(map(len, parts)), dtype=dtype)
    place = len(joined)
    while parts:
        part = parts.pop()
        joined[place - len(part) : place] = part
        place -= len(part)
    return joined
