"""The shop's search: BM25 over the products, equal to Lucene's to the last digit.

Scores are sums in double of float32 addends. With under 2^21 documents and queries of ordinary
length these sums are exact, so that the order of adding does not matter.
"""

import hashlib
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rewardswap.envs.webshop.analyzer import analyze
from rewardswap.envs.webshop.bm25 import Saturation, inverse_document_frequency
from rewardswap.envs.webshop.frequent import FrequentTerms
from rewardswap.envs.webshop.index_file import read_arrays, write_arrays
from rewardswap.envs.webshop.postings import Collector, Postings
from rewardswap.envs.webshop.ranking import QueryTerm, kth_highest, rank
from rewardswap.envs.webshop.strings import SortedStrings

VERSION = 2
"""To be raised with every change of the analysis, the scores or the arrays in the file."""
TERMS_REMEMBERED = 2**14
"""Terms of queries that need not be looked up again."""
Documents = Iterable[tuple[str, str]]


class SearchIndex:
    """Finds the documents that match a query best."""

    def __init__(self, ids: SortedStrings, postings: Postings, fingerprint: str) -> None:
        self.fingerprint = fingerprint
        """Of the documents, see `fingerprint_of`."""
        self._ids = ids
        self._postings = postings
        self._saturation = Saturation(postings.mean_length)
        self._known_term = lru_cache(maxsize=TERMS_REMEMBERED)(self._term)

    @classmethod
    def build(cls, documents: Documents) -> "SearchIndex":
        """Of ids, which must be unique, and contents. Contents are read once and not kept."""
        collector = Collector()
        digest = _Digest()
        ids: list[str] = []
        for name, contents in digest.watch(documents):
            ids.append(name)
            collector.add(contents)
        table, postings = collector.finish(ids)
        return cls(table, postings, digest.text())

    @classmethod
    def cached(
        cls,
        path: Path,
        documents: Callable[[], Documents],
        shown: Callable[[], Documents] | None = None,
    ) -> "SearchIndex":
        """From the file if it was made for these documents, else built and written to it.

        `shown` gives the same documents where they are read to build, for a bar. A file that
        cannot be written is a warning: the index is built again the next time.
        """
        index = cls.load(path, fingerprint_of(documents()))
        if index is None:
            index = cls.build((shown or documents)())
            try:
                index.save(path)
            except OSError as error:
                warnings.warn(
                    f"the search index is not kept in {path} ({error.strerror or error}) and is "
                    "built again at the next start; make room there, or set $REWARDSWAP_CACHE to "
                    "another folder or to off",
                    stacklevel=2,
                )
        return index

    @classmethod
    def load(cls, path: Path, expected_fingerprint: str) -> "SearchIndex | None":
        """From a file, which stays mapped and is shared between processes.

        None if the file is missing, damaged, cut short, of another version of this program or of
        Unicode, or made for other documents: `build` then.
        """
        arrays = read_arrays(path, _facts(expected_fingerprint))
        if arrays is None:
            return None
        filled, mean_length = arrays["statistics"].tolist()
        postings = Postings(
            terms=SortedStrings(arrays["term_letters"], arrays["term_ends"]),
            starts=arrays["starts"],
            documents=arrays["documents"],
            codes=arrays["codes"],
            peaks=arrays["peaks"],
            frequent=FrequentTerms(arrays["frequent_terms"], arrays["frequent_parts"]),
            filled=int(filled),
            mean_length=mean_length,
        )
        ids = SortedStrings(arrays["id_letters"], arrays["id_ends"])
        return cls(ids, postings, expected_fingerprint)

    def save(self, path: Path) -> None:
        """Writes the file that `load` reads, in one step for everybody else."""
        postings = self._postings
        arrays: dict[str, NDArray[Any]] = {
            "statistics": np.array([postings.filled, postings.mean_length], dtype=np.float64),
            "id_letters": self._ids.letters,
            "id_ends": self._ids.ends,
            "term_letters": postings.terms.letters,
            "term_ends": postings.terms.ends,
            "starts": postings.starts,
            "documents": postings.documents,
            "codes": postings.codes,
            "peaks": postings.peaks,
            "frequent_terms": postings.frequent.terms,
            "frequent_parts": postings.frequent.parts,
        }
        write_arrays(path, _facts(self.fingerprint), arrays)

    def __len__(self) -> int:
        return len(self._ids)

    def search(self, query: str, k: int = 50) -> list[tuple[str, float]]:
        """The k documents with the highest scores, fewer if fewer match; ties by id."""
        terms = list(self._query_terms(query))
        if k < 1 or not terms:
            return []
        found, scores = rank(terms, len(self), self._saturation, k)
        enough = np.flatnonzero(scores >= kth_highest(scores, k))
        order = enough[np.lexsort((found[enough], -scores[enough]))][:k]
        best = zip(found[order].tolist(), scores[order].tolist(), strict=True)
        return [(self._ids[number], reached) for number, reached in best]

    def _query_terms(self, query: str) -> Iterator[QueryTerm]:
        for word, times in Counter(analyze(query)).items():
            term = self._known_term(word)
            if term is not None:
                yield term if times == 1 else term.repeated(times)

    def _term(self, word: str) -> QueryTerm | None:
        postings = self._postings
        number = postings.terms.find(word)
        if number is None:
            return None
        documents, codes = postings.of(number)
        return QueryTerm(
            documents,
            codes,
            postings.frequent.find(number),
            postings.peaks[number : number + 1],
            inverse_document_frequency(postings.filled, len(documents)),
        )


def fingerprint_of(documents: Documents) -> str:
    """A hash of the ids and contents in their order; what `SearchIndex.load` expects."""
    digest = _Digest()
    for _ in digest.watch(documents):
        pass
    return digest.text()


class _Digest:
    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=20)

    def watch(self, documents: Documents) -> Iterator[tuple[str, str]]:
        for name, contents in documents:
            for part in (name, contents):
                data = part.encode("utf-8", "surrogatepass")
                self._hash.update(len(data).to_bytes(8, "little"))
                self._hash.update(data)
            yield name, contents

    def text(self) -> str:
        return self._hash.hexdigest()


def _facts(fingerprint: str) -> dict[str, Any]:
    return {
        "version": VERSION,
        "unicode": unicodedata.unidata_version,
        "fingerprint": fingerprint,
    }
