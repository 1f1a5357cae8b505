"""Reads a large JSON list one element at a time (ours): the full set of products is 5 GB."""

import codecs
import json
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

CHUNK = 2**20
"""Bytes that are read at once; more where an element is longer."""
BLANKS = " \t\n\r"

_decode = json.JSONDecoder().raw_decode


def is_list(path: Path) -> bool:
    """Whether a file begins like a list; raises OSError."""
    with path.open("rb") as file:
        return file.read(CHUNK).lstrip().startswith(b"[")


def read_elements(path: Path) -> Iterator[object]:
    """The elements of the list in a file.

    Raises OSError, UnicodeDecodeError, json.JSONDecodeError and RecursionError where reading the
    whole file at once would.
    """
    with path.open("rb") as file:
        text = _Text(file)
        text.take("[")
        if text.peek() != "]":
            yield text.element()
            while text.peek() == ",":
                text.take(",")
                yield text.element()
        text.take("]")
        if text.peek():
            raise text.fault("Extra data")


class _Text:
    """The text of a file from where it was not taken yet."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._bytes = 0
        self._text = ""
        self._place = 0
        self._before = 0
        """Characters before `_text`."""

    def peek(self) -> str:
        """The next character that is not blank; empty at the end of the file."""
        while True:
            while self._place < len(self._text) and self._text[self._place] in BLANKS:
                self._place += 1
            if self._place < len(self._text):
                return self._text[self._place]
            if not self._read(CHUNK):
                return ""

    def take(self, sign: str) -> None:
        """Passes over a sign that must come next."""
        if self.peek() != sign:
            raise self.fault(f"Expecting {sign!r}")
        self._place += 1

    def element(self) -> object:
        """The next value, for which more is read until it is whole."""
        self.peek()
        size = CHUNK
        while True:
            try:
                value, self._place = _decode(self._text, self._place)
                return value
            except json.JSONDecodeError as fault:
                fault.pos += self._before
                if not self._read(size):
                    raise
            size *= 2

    def fault(self, message: str) -> json.JSONDecodeError:
        """That something is wrong with the next character."""
        fault = json.JSONDecodeError(message, self._text, self._place)
        fault.pos += self._before
        return fault

    def _read(self, size: int) -> bool:
        """Adds to the text; false at the end of the file."""
        data = self._file.read(size)
        pending = len(self._decoder.getstate()[0])
        try:
            more = self._decoder.decode(data, final=not data)
        except UnicodeDecodeError as fault:
            fault.start += self._bytes - pending
            raise
        self._bytes += len(data)
        self._before += self._place
        self._text = self._text[self._place :] + more
        self._place = 0
        return bool(data)
