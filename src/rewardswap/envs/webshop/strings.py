"""A sorted list of different strings in two arrays, so that it can lie in a mapped file."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray


class SortedStrings:
    """Strings in the order of their code points, found by bisection."""

    def __init__(self, letters: NDArray[np.uint8], ends: NDArray[np.int64]) -> None:
        self.letters = letters
        """All strings in UTF-8, one after the other."""
        self.ends = ends
        """Where each string ends."""
        # single places are read faster from these
        self._letters = letters.data
        self._ends = ends.data

    @classmethod
    def of(cls, strings: Iterable[str]) -> "SortedStrings":
        """Of strings that are sorted already."""
        letters = bytearray()
        ends = []
        for string in strings:
            letters += _encode(string)
            ends.append(len(letters))
        return cls(np.frombuffer(letters, dtype=np.uint8), np.array(ends, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, place: int) -> str:
        start = self._ends[place - 1] if place else 0
        return str(self._letters[start : self._ends[place]], "utf-8", "surrogatepass")

    def find(self, string: str) -> int | None:
        """The place of a string; None if it is not there."""
        wanted = _encode(string)
        letters, ends = self._letters, self._ends
        place = bisect_left(
            range(len(ends)),
            wanted,
            key=lambda at: letters[ends[at - 1] if at else 0 : ends[at]].tobytes(),
        )
        return place if place < len(ends) and self[place] == string else None


def code_point_order(strings: Sequence[str]) -> NDArray[np.int64]:
    """The places of strings, sorted by string."""
    return np.array(sorted(range(len(strings)), key=strings.__getitem__), dtype=np.int64)


def _encode(string: str) -> bytes:
    return string.encode("utf-8", "surrogatepass")
