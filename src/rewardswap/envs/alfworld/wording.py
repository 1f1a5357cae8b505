"""The same news in fewer words: a fixed short form of every sentence that ALFWorld says (ours).

For agents with a small vocabulary and context. Names, numbers, order and every fact are kept;
articles and courtesy are dropped. Words are lower-case and separated by single spaces, punctuation
being words of its own:

    You arrive at sinkbasin 1. On the sinkbasin 1, you see a cup 1, and a knife 1.
    at sinkbasin 1 you see cup 1 knife 1 .
"""

import re

_NAME = r"(\S+ \d+)"
_SEEN = r"(nothing|a [^.]+)"

RULES = tuple(
    (re.compile(pattern), template)
    for pattern, template in (
        (r"Nothing happens\.", "nothing happens ."),
        (rf"You arrive at {_NAME}\. On the \1, you see {_SEEN}\.", "at {0} you see {1} ."),
        (rf"You arrive at {_NAME}\. The \1 is closed\.", "at {0} closed ."),
        (
            rf"You arrive at {_NAME}\. The \1 is open\. In it, you see {_SEEN}\.",
            "at {0} open you see {1} .",
        ),
        (
            rf"You open the {_NAME}\. The \1 is open\. In it, you see {_SEEN}\.",
            "{0} open you see {1} .",
        ),
        (rf"You pick up the {_NAME} from the {_NAME}\.", "took {0} from {1} ."),
        (rf"You move the {_NAME} to the {_NAME}\.", "moved {0} to {1} ."),
        (rf"You close the {_NAME}\.", "{0} closed ."),
        (rf"You clean the {_NAME} using the {_NAME}\.", "cleaned {0} with {1} ."),
        (rf"You heat the {_NAME} using the {_NAME}\.", "heated {0} with {1} ."),
        (rf"You cool the {_NAME} using the {_NAME}\.", "cooled {0} with {1} ."),
        (rf"You turn on the {_NAME}\.", "turned on {0} ."),
        (rf"You sliced the {_NAME} with the {_NAME}\.", "sliced {0} with {1} ."),
        (r"You are not carrying anything\.", "carrying nothing ."),
        (rf"You are carrying: a {_NAME}\.", "carrying {0} ."),
        (rf"On the {_NAME}, you see {_SEEN}\.", "{0} you see {1} ."),
        (rf"The {_NAME} is closed\.", "{0} closed ."),
        (rf"The {_NAME} is open\. In it, you see {_SEEN}\.", "{0} open you see {1} ."),
        (
            rf"You are facing the ([^.]+)\. Next to it, you see {_SEEN}\.",
            "facing {0} next to it you see {1} .",
        ),
        (
            rf"You are in the middle of a room\. Looking quickly around you, you see {_SEEN}\.",
            "you see {0} .",
        ),
        (rf"This is a normal {_NAME}\. In it, you see {_SEEN}\.", "normal {0} in it you see {1} ."),
        (rf"This is a ((?:hot|cool|cold|and|clean|sliced| )+) {_NAME}\.", "{0} {1} ."),
        (rf"This {_NAME} is on\.", "{0} on ."),
        (rf"There's nothing special about {_NAME}\.", "nothing special about {0} ."),
        (
            r"Available commands:\n(?s:.*)",
            "commands : look inventory go open close take move examine use heat clean cool slice .",
        ),
    )
)
"""Sentence of ALFWorld -> its short form; of a listing only the numbered names are kept."""

FIXED_WORDS = tuple(
    sorted(
        {word for _, template in RULES for word in template.split() if "{" not in word}
        | {"task", "hot", "cool", "cold", "and", "clean", "sliced"}
    )
)
"""All words of the short form but entity names, numbers and the words of the task sentence."""

_START = re.compile(r"-= Welcome to TextWorld, ALFRED! =-\n\n(.*)\n\nYour task is to: (.*)")
_NUMBERED = re.compile(r"\S+ \d+")
_WORD = re.compile(r"[a-z0-9]+|[^\sa-z0-9]")


def shorten(text: str) -> str:
    """The short form of an answer of the engine.

    Raises ValueError for a text that ALFWorld does not say.
    """
    start = _START.fullmatch(text)
    if start:
        return f"{_shorten_sentence(start[1])} task : {plain_words(start[2])}"
    return _shorten_sentence(text)


def plain_words(text: str) -> str:
    """Lower-case words and punctuation marks, separated by single spaces."""
    return " ".join(_WORD.findall(text.lower()))


def _shorten_sentence(text: str) -> str:
    for pattern, template in RULES:
        found = pattern.fullmatch(text)
        if found:
            return template.format(*map(_bare, found.groups()))
    raise ValueError(f"no short form for {text!r}; `shorten` takes texts of ALFWorld's engine only")


def _bare(part: str) -> str:
    """The numbered names of a listing; a part without any stays as it is."""
    return " ".join(_NUMBERED.findall(part)) or part
