"""From a text to the terms that are searched, as Lucene's English analyzer does.

Words, English possessive dropped, lower case, stop words dropped, stems.
"""

from functools import lru_cache

from rewardswap.envs.webshop.porter import stem
from rewardswap.envs.webshop.words import is_word, split_words

_STOP_WORDS = (
    "a an and are as at be but by for if in into is it no not of on or such that the their then "
    "there these they this to was will with"
)
STOP_WORDS = frozenset(_STOP_WORDS.split())
APOSTROPHES = "'’＇"


def analyze(text: str) -> list[str]:
    """The terms of a text in order."""
    return [term for word in split_words(text) if (term := _known_term(word)) is not None]


def to_term(word: str) -> str | None:
    """The term of one word from `split_words`; None if it is not indexed."""
    if not is_word(word):
        return None
    if word[-1] in "sS" and word[-2:-1] in APOSTROPHES and len(word) > 1:
        word = word[:-2]
    word = _lower(word)
    if word in STOP_WORDS:
        return None
    return stem(word) if word.isascii() else _stem_in_utf16(word)


_known_term = lru_cache(maxsize=2**15)(to_term)


def _lower(word: str) -> str:
    """Lower case letter by letter: no letter becomes two, and every final sigma is a plain one."""
    if word.isascii():
        return word.lower()
    return "".join("i" if letter == "İ" else letter.lower() for letter in word)


def _stem_in_utf16(word: str) -> str:
    """The stemmer counts letters beyond U+FFFF as two, as Java's strings do."""
    if max(word) <= "\uffff":
        return stem(word)
    code = word.encode("utf-16-le")
    units = "".join(chr(code[i] | code[i + 1] << 8) for i in range(0, len(code), 2))
    return stem(units).encode("utf-16-le", "surrogatepass").decode("utf-16-le")
