"""How WebShop tells that two texts mean the same: by colour, then by fuzzy comparison."""

import re
from functools import lru_cache

# fmt: off
COLOURS = (
    "alabaster", "apricot", "aqua", "ash", "asphalt", "azure", "banana", "beige", "black", "blue",
    "blush", "bordeaux", "bronze", "brown", "burgundy", "camel", "camo", "caramel", "champagne",
    "charcoal", "cheetah", "chestnut", "chocolate", "christmas", "coffee", "cognac", "copper",
    "coral", "cranberry", "cream", "crystal", "dark", "denim", "eggplant", "elephant", "espresso",
    "fuchsia", "gold", "granite", "grape", "graphite", "grass", "gray", "green", "grey", "heather",
    "indigo", "ivory", "ivy", "khaki", "lavender", "lemon", "leopard", "light", "lilac", "lime",
    "magenta", "maroon", "mauve", "merlot", "midnight", "mint", "mocha", "multicolor", "mushroom",
    "mustard", "natural", "navy", "nude", "olive", "orange", "peach", "pewter", "pink", "plum",
    "purple", "rainbow", "red", "rose", "royal", "rust", "sand", "sapphire", "seashell", "silver",
    "skull", "slate", "steel", "stone", "stonewash", "sunflower", "tan", "taupe", "teal", "tiger",
    "turquoise", "violet", "walnut", "wheat", "white", "wine", "yellow",
)
# fmt: on
"""What counts as a colour, in the order in which WebShop looks for them."""

SAME = 85
"""Two texts whose `token_set_ratio` is above this count as the same."""

NOT_A_WORD = re.compile(r"[\W_]")
CLEANED: dict[int, str | None] = {**dict.fromkeys(range(128, 256)), ord("İ"): "i"}


@lru_cache(maxsize=8192)
def plain_colour(option: str | tuple[str, str]) -> str | tuple[str, str]:
    """The first colour that an option contains, else the option: "dark red" -> "dark".

    Of a (name, value) pair only an element that equals a colour counts, as in the original.
    """
    return next((colour for colour in COLOURS if colour in option), option)


def is_same(a: object, b: object) -> bool:
    """Whether two texts (or the text forms of other values) count as the same."""
    return token_set_ratio(str(a), str(b)) > SAME


def token_set_ratio(a: str, b: str) -> int:
    """Similarity in [0, 100] of two texts as sets of words; equal to that of `thefuzz` 0.22.

    100 where one set of words contains the other; 0 where one is empty.
    """
    words_a, words_b = _words(a), _words(b)
    if not words_a or not words_b:
        return 0
    common = words_a & words_b
    if common and common in (words_a, words_b):
        return 100
    rest_a, rest_b = " ".join(sorted(words_a - common)), " ".join(sorted(words_b - common))
    shared = len(" ".join(common))
    space = 1 if common else 0
    full_a, full_b = shared + space + len(rest_a), shared + space + len(rest_b)
    edits = len(rest_a) + len(rest_b) - 2 * common_length(rest_a, rest_b)
    ratios = [_ratio(edits, full_a + full_b)]
    if common:
        ratios.append(_ratio(space + len(rest_a), shared + full_a))
        ratios.append(_ratio(space + len(rest_b), shared + full_b))
    return round(max(ratios))


def common_length(a: str, b: str) -> int:
    """Characters of the longest common subsequence; Hyyrö's bit-parallel row update."""
    places: dict[str, int] = {}
    for place, sign in enumerate(a):
        places[sign] = places.get(sign, 0) | 1 << place
    full = row = (1 << len(a)) - 1
    for sign in b:
        hits = row & places.get(sign, 0)
        row = ((row + hits) | (row - hits)) & full
    return len(a) - row.bit_count()


def _ratio(edits: int, length: int) -> float:
    return 100.0 - 100.0 * edits / length


@lru_cache(maxsize=8192)
def _words(text: str) -> frozenset[str]:
    """Lower-case words without punctuation; characters 128 to 255 are dropped."""
    return frozenset(NOT_A_WORD.sub(" ", text.translate(CLEANED)).lower().split())
