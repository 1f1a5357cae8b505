"""What kind of character each Unicode character is for finding words (UAX #29).

The kinds are one ASCII character each, so that a text of kinds can be matched by a regular
expression. They are found from `unicodedata` and a few ranges when a character is first seen.
"""

import unicodedata

OTHER = " "
KINDS = {
    "A": "letter",
    "H": "Hebrew letter",
    "0": "digit",
    "K": "katakana",
    "i": "stands alone: Han and hiragana",
    "s": "letter of a script without spaces (Thai, Lao, Khmer, Burmese)",
    "_": "underscore and the like",
    ":": "joins letters",
    ",": "joins digits",
    ".": "joins letters and joins digits",
    "'": "apostrophe",
    '"': "double quote",
    "x": "mark or format character, belongs to what is before it",
    "z": "zero-width joiner, likewise",
    "v": "variation selector for pictures or text, likewise",
    "k": "keycap, likewise",
    "m": "skin tone, likewise",
    "e": "pictograph",
    "r": "half of a flag",
    "#": "can take a keycap",
    OTHER: "none of these",
}

Ranges = tuple[tuple[int, int], ...]

ONE_BY_ONE = {
    **dict.fromkeys(":··״‧︓﹕：", ":"),
    **dict.fromkeys(",;;։٬߸⁄︐︔﹐﹔，；", ","),
    **dict.fromkeys(".‘’․﹒＇．", "."),
    **dict.fromkeys("#*", "#"),
    **dict.fromkeys("\u200cﾞﾟ", "x"),
    **dict.fromkeys("\ufe0e\ufe0f", "v"),
    "'": "'",
    '"': '"',
    "\u0387": ":",
    "\u037e": ",",
    "\u200b": OTHER,
    "\u200d": "z",
    "\u20e3": "k",
    "\u05f3": "A",
    "\u066b": "0",
}

_PICTOGRAPHS = (
    "A9 AE 203C 2049 2122 2194-2199 21A9-21AA 231A-231B 2328 2388 23CF 23E9-23F3 "
    "23F8-23FA 25AA-25AB 25B6 25C0 25FB-25FE 2600-2605 2607-2612 2614-2685 2690-2705 "
    "2708-2712 2714 2716 271D 2721 2728 2733-2734 2744 2747 274C 274E 2753-2755 2757 "
    "2763-2767 2795-2797 27A1 27B0 27BF 2934-2935 2B05-2B07 2B1B-2B1C 2B50 2B55 3030 "
    "303D 3297 3299 1F000-1F0FF 1F10D-1F10F 1F12F 1F16C-1F16F 1F18E 1F191-1F19A "
    "1F1AD-1F1E5 1F201-1F20F 1F21A 1F22F 1F232-1F23A 1F23C-1F23F 1F249-1F3FA 1F400-1F53D "
    "1F546-1F64F 1F680-1F6FF 1F774-1F77F 1F7D5-1F7FF 1F80C-1F80F 1F848-1F84F 1F85A-1F85F "
    "1F888-1F88F 1F8AE-1F8FF 1F90C-1F93A 1F93C-1F945 1F947-1FAFF 1FC00-1FFFD"
)
PICTOGRAPHS: Ranges = tuple(
    (int(first, 16), int(last or first, 16))
    for first, _, last in (part.partition("-") for part in _PICTOGRAPHS.split())
)
"""Extended_Pictographic of Unicode 11 and later, unassigned code points included, less letters."""

HAN: Ranges = (
    (0x2E80, 0x2FD5),
    (0x3005, 0x3005),
    (0x3007, 0x3007),
    (0x3021, 0x3029),
    (0x3038, 0x303B),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAD9),
    (0x20000, 0x3FFFD),
)
HIRAGANA: Ranges = ((0x3041, 0x3096), (0x309D, 0x309F), (0x1B001, 0x1B11F), (0x1F200, 0x1F200))
KATAKANA: Ranges = (
    (0x3031, 0x3035),
    (0x309B, 0x309C),
    (0x30A0, 0x30FA),
    (0x30FC, 0x30FF),
    (0x31F0, 0x31FF),
    (0x32D0, 0x32FE),
    (0x3300, 0x3357),
    (0xFF66, 0xFF9D),
    (0x1B000, 0x1B000),
)
HEBREW: Ranges = ((0x5D0, 0x5F2), (0xFB1D, 0xFB4F))
WITHOUT_SPACES: Ranges = (
    (0xE00, 0xEFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x1950, 0x19DF),
    (0x1A20, 0x1AAF),
    (0xA9E0, 0xA9FF),
    (0xAA60, 0xAADF),
    (0x11700, 0x1174F),
)
NO_LETTERS: Ranges = ((0x3006, 0x3006), (0x17000, 0x18D8F), (0x1B170, 0x1B2FF))
"""Ideographs that are not Han: in no word."""
CIRCLED_LETTERS: Ranges = (
    (0x24B6, 0x24E9),
    (0x1F130, 0x1F149),
    (0x1F150, 0x1F169),
    (0x1F170, 0x1F189),
)
FLAGS: Ranges = ((0x1F1E6, 0x1F1FF),)
SKIN_TONES: Ranges = ((0x1F3FB, 0x1F3FF),)
TAGS: Ranges = ((0xE0020, 0xE007F),)

IN_RANGES: tuple[tuple[str, Ranges], ...] = (
    ("m", SKIN_TONES),
    ("r", FLAGS),
    ("x", TAGS),
    ("A", CIRCLED_LETTERS),
    ("e", PICTOGRAPHS),
)
"""Whatever their category is, looked up in this order."""

LETTERS_IN_RANGES: tuple[tuple[str, Ranges], ...] = (
    (OTHER, NO_LETTERS),
    ("i", HIRAGANA),
    ("s", WITHOUT_SPACES),
    ("H", HEBREW),
)
OF_CATEGORY = {"Nd": "0", "Pc": "_", "Mn": "x", "Mc": "x", "Me": "x", "Cf": "x"}


def kind(character: str) -> str:
    """The kind of a character, one of KINDS."""
    known = ONE_BY_ONE.get(character)
    if known is not None:
        return known
    point = ord(character)
    for name, ranges in IN_RANGES:
        if _within(point, ranges):
            return name
    category = unicodedata.category(character)
    if category in OF_CATEGORY:
        return OF_CATEGORY[category]
    if _within(point, KATAKANA) and category != "Cn":
        return "K"
    if _within(point, HAN) and category not in ("Cn", "Po"):
        return "i"
    if category[0] != "L" and category != "Nl":
        return OTHER
    for name, ranges in LETTERS_IN_RANGES:
        if _within(point, ranges):
            return name
    return "A"


def _within(point: int, ranges: Ranges) -> bool:
    return any(first <= point <= last for first, last in ranges)


class Kinds(dict[int, str]):
    """Code point to kind, for `str.translate`; filled as characters are met."""

    def __missing__(self, point: int) -> str:
        found = self[point] = kind(chr(point))
        return found
