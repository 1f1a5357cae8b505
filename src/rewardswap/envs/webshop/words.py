"""Splits a text into words as Lucene's standard tokenizer does (UAX #29, with its additions).

The additions: Han and hiragana characters stand alone, runs of Thai and the like stay together,
emoji are words, a word of more than 255 characters is cut. Texts in ASCII take a shorter way.
"""

import re

from rewardswap.envs.webshop.characters import Kinds

LONGEST = 255
"""Longer words are cut into pieces of this many characters."""

_ASCII = re.compile(
    r"[A-Za-z0-9_]++"
    r"(?>(?:(?:(?<=[A-Za-z])[:.'](?=[A-Za-z])|(?<=[0-9])[,;.'](?=[0-9]))[A-Za-z0-9_]++)*)"
)
"""May also match underscores alone, which are no word. Atomic groups stand for possessive ones of
more than a character, which Python before 3.11.5 matches wrong (gh-106052)."""


def _grammar() -> str:
    """The words as a regular expression over kinds of characters (see `characters.KINDS`)."""
    marks = "[xzvkm]*+"  # they belong to the character before them
    marks_but_selector = "[xzkm]*+"
    line = f"(?:_{marks})"
    lines = f"(?>{line}*)"
    letter = f"""(?:A{marks}|H{marks}(?>(?:"{marks}H{marks})*)(?>(?:'{marks}(?![AH]))?))"""
    letters = f"{letter}(?>(?:{lines}{letter}|[:.']{marks}{letter})*)"
    digits = f"0{marks}(?>(?:{lines}0{marks}|[,.']{marks}0{marks})*)"
    katakana = f"K{marks}(?>(?:{lines}K{marks})*)"
    piece = f"(?:{katakana}|(?>(?:{letters}|{digits})+))"
    word = f"{lines}{piece}(?>(?:(?>{line}+){piece})*){lines}"
    picture = f"e{marks_but_selector}v?+"
    pictures = f"z*+{picture}(?>(?:(?:(?<=z)|z++){picture})*)"
    others = (
        f"m{marks_but_selector}",
        f"r{marks}r{marks}",
        "#[xzm]*+v?+k[xzkm]*+",
        f"(?>(?:s{marks})+)",
        f"i{marks}",
        f"(?>{line}+)|z++",  # no words; matched so that no place in the run is tried again
    )
    return "|".join((word, pictures, *others))


_ANY = re.compile(_grammar())
_kinds = Kinds()


def split_words(text: str) -> list[str]:
    """The words of a text in order; some may be only underscores, see `is_word`."""
    if text.isascii():
        words = _ASCII.findall(text)
        if len(max(words, key=len, default="")) > LONGEST:
            return _cut(text, text, _ASCII)
        return words
    kinds = text.translate(_kinds)
    words = [text[start:end] for start, end in map(re.Match.span, _ANY.finditer(kinds))]
    if len(max(words, key=len, default="")) > LONGEST:
        return _cut(text, kinds, _ANY)
    return words


def is_word(word: str) -> bool:
    """Whether what `split_words` found is a word: not if nothing but underscores and the like."""
    if word.isascii():
        return bool(word.strip("_"))
    return any(_kinds[ord(character)] not in "_xzvk" for character in word)


def _cut(text: str, kinds: str, pattern: re.Pattern[str]) -> list[str]:
    """The words of the text, those that are too long cut."""
    words = []
    for whole in pattern.finditer(kinds):
        place, end = whole.span()
        if end - place <= LONGEST:
            words.append(text[place:end])
            continue
        while place < end:
            piece = pattern.match(kinds, place, min(place + LONGEST, end))
            stop = piece.end() if piece else place + 1
            if piece:
                words.append(text[place:stop])
            place = stop
    return words
