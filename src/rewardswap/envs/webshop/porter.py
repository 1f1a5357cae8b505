"""The Porter stemmer (1980) with the two later changes of its author.

The changes: `bli` becomes `ble` and `logi` becomes `log` in the second step, and words of one or
two letters stay as they are. Everything that is not a, e, i, o, u or a y after a consonant counts
as a consonant, digits and letters of other alphabets too.
"""

STEP_2 = (
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("bli", "ble"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
    ("logi", "log"),
)
STEP_3 = (
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
)
STEP_4 = (
    "al",
    "ance",
    "ence",
    "er",
    "ic",
    "able",
    "ible",
    "ant",
    "ement",
    "ment",
    "ent",
    "ion",
    "ou",
    "ism",
    "ate",
    "iti",
    "ous",
    "ive",
    "ize",
)
ENDINGS_2 = tuple(ending for ending, _ in STEP_2)
ENDINGS_3 = tuple(ending for ending, _ in STEP_3)


def stem(word: str) -> str:
    """The stem of a lower-case word."""
    if len(word) <= 2:
        return word
    word = _plurals_and_participles(word)
    if word.endswith("y") and "v" in _shape(word[:-1]):
        word = word[:-1] + "i"
    word = _replace(word, STEP_2, ENDINGS_2)
    word = _replace(word, STEP_3, ENDINGS_3)
    word = _drop_ending(word)
    return _tidy(word)


def _shape(word: str) -> str:
    """One letter per letter of the word: v for a vowel, c for a consonant."""
    shape = []
    before = "v"
    for letter in word:
        if letter == "y":
            before = "c" if before == "v" else "v"
        else:
            before = "v" if letter in "aeiou" else "c"
        shape.append(before)
    return "".join(shape)


def measure(word: str) -> int:
    """Porter's m: how often a vowel is followed by a consonant."""
    return _shape(word).count("vc")


def _ends_in_cvc(word: str) -> bool:
    """Consonant, vowel, consonant at the end, the last not w, x or y: `hop`, not `snow`."""
    return len(word) >= 3 and _shape(word)[-3:] == "cvc" and word[-1] not in "wxy"


def _ends_in_double_consonant(word: str) -> bool:
    return len(word) >= 2 and word[-1] == word[-2] and _shape(word)[-1] == "c"


def _plurals_and_participles(word: str) -> str:
    if word.endswith(("sses", "ies")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    if word.endswith("eed"):
        return word[:-1] if measure(word[:-3]) > 0 else word
    for ending in ("ed", "ing"):
        if word.endswith(ending):
            root = word[: -len(ending)]
            return _mend(root) if "v" in _shape(root) else word
    return word


def _mend(root: str) -> str:
    """Gives a root that lost -ed or -ing its e back, or takes its doubled consonant."""
    if root.endswith(("at", "bl", "iz")):
        return root + "e"
    if _ends_in_double_consonant(root):
        return root if root[-1] in "lsz" else root[:-1]
    if measure(root) == 1 and _ends_in_cvc(root):
        return root + "e"
    return root


def _replace(word: str, endings: tuple[tuple[str, str], ...], any_of: tuple[str, ...]) -> str:
    if not word.endswith(any_of):
        return word
    for ending, other in endings:
        if word.endswith(ending):
            root = word[: -len(ending)]
            return root + other if measure(root) > 0 else word
    return word


def _drop_ending(word: str) -> str:
    if not word.endswith(STEP_4):
        return word
    for ending in STEP_4:
        if word.endswith(ending):
            root = word[: -len(ending)]
            if ending == "ion" and not root.endswith(("s", "t")):
                return word
            return root if measure(root) > 1 else word
    return word


def _tidy(word: str) -> str:
    """The last step: a final e, and a double l."""
    if word.endswith("e"):
        root = word[:-1]
        m = measure(root)
        if m > 1 or (m == 1 and not _ends_in_cvc(root)):
            word = root
    if word.endswith("ll") and measure(word) > 1:
        word = word[:-1]
    return word
