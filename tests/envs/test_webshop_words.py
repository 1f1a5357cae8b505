"""Words, terms and stems of the shop's search."""

import random
import sys
import time
import unicodedata

import pytest

from rewardswap.envs.webshop.analyzer import STOP_WORDS, analyze
from rewardswap.envs.webshop.characters import KINDS, kind
from rewardswap.envs.webshop.porter import measure, stem
from rewardswap.envs.webshop.words import is_word, split_words

STEMS = {
    # plurals and participles
    "caresses": "caress",
    "ponies": "poni",
    "ties": "ti",
    "caress": "caress",
    "cats": "cat",
    "feed": "feed",
    "agreed": "agre",
    "plastered": "plaster",
    "bled": "bled",
    "motoring": "motor",
    "sing": "sing",
    "conflated": "conflat",
    "troubled": "troubl",
    "sized": "size",
    "hopping": "hop",
    "tanned": "tan",
    "falling": "fall",
    "hissing": "hiss",
    "fizzed": "fizz",
    "failing": "fail",
    "filing": "file",
    "snowing": "snow",
    "happy": "happi",
    "sky": "sky",
    "playing": "plai",
    # second step, the author's changes first
    "possibly": "possibl",
    "conformably": "conform",
    "geology": "geologi",
    "apology": "apolog",
    "relational": "relat",
    "conditional": "condit",
    "rational": "ration",
    "valenci": "valenc",
    "digitizer": "digit",
    "radicalli": "radic",
    "differentli": "differ",
    "vileli": "vile",
    "analogousli": "analog",
    "vietnamization": "vietnam",
    "operator": "oper",
    "feudalism": "feudal",
    "decisiveness": "decis",
    "hopefulness": "hope",
    "callousness": "callous",
    "formaliti": "formal",
    "sensitiviti": "sensit",
    "sensibiliti": "sensibl",
    # third and fourth step
    "triplicate": "triplic",
    "formative": "form",
    "electrical": "electr",
    "goodness": "good",
    "revival": "reviv",
    "allowance": "allow",
    "adjustable": "adjust",
    "replacement": "replac",
    "adoption": "adopt",
    "communism": "commun",
    "effective": "effect",
    "bowdlerize": "bowdler",
    "onion": "onion",
    # last step
    "probate": "probat",
    "rate": "rate",
    "cease": "ceas",
    "controll": "control",
    "roll": "roll",
    # nothing to do
    "as": "as",
    "is": "is",
    "3g": "3g",
    "1080p": "1080p",
    "x's": "x'",
    "": "",
}


@pytest.mark.parametrize(("word", "expected"), STEMS.items())
def test_stems(word: str, expected: str) -> None:
    assert stem(word) == expected


def test_measure_counts_vowels_before_consonants() -> None:
    assert [measure(word) for word in ("tr", "ee", "tree", "y", "by")] == [0] * 5
    assert [measure(word) for word in ("trouble", "oats", "trees", "ivy")] == [1] * 4
    assert [measure(word) for word in ("troubles", "private", "oaten", "orrery")] == [2] * 4


WORDS = {
    "a:b c.d e,f it's": ["a:b", "c.d", "e", "f", "it's"],
    "1,000.50 1:2 3;4 5'6": ["1,000.50", "1", "2", "3;4", "5'6"],
    "a.1 1.a 802.11b/g/n 2x4": ["a", "1", "1", "a", "802.11b", "g", "n", "2x4"],
    "a_b __c_ d_:_e a..b :a: 'q'": ["a_b", "__c_", "d_", "_e", "a", "b", "a", "q"],
    "wi-fi & co. (new!)": ["wi", "fi", "co", "new"],
    "don’t l’été é:é é，é": ["don’t", "l’été", "é:é", "é", "é"],
    "１２３ ｆｕｌｌ Ω º ½ ²": ["１２３", "ｆｕｌｌ", "Ω", "º"],
    "日本 ひら カタカナ 한국어 ภาษาไทย": ["日", "本", "ひ", "ら", "カタカナ", "한국어", "ภาษาไทย"],
    "צ\"ה ג' א'ב": ['צ"ה', "ג'", "א'ב"],
    "❤️love 💯brst ★ © ™ →": ["❤️", "love", "💯", "brst", "★", "©", "™"],
    "👨\u200d💼👍🏽🇩🇪🇫🇷": ["👨\u200d💼", "👍🏽", "🇩🇪", "🇫🇷"],
    "1️⃣ #️⃣ #1 *": ["1️⃣", "#️⃣", "1"],
    "a\u0301b x\u00ady a\u200bb \u0301": ["a\u0301b", "x\u00ady", "a", "b"],
    "a\0b\ud800c": ["a", "b", "c"],
    "_ __ é _ \u200d": ["é"],
    "": [],
    " \n\t": [],
}


@pytest.mark.parametrize(("text", "expected"), WORDS.items(), ids=ascii)
def test_words(text: str, expected: list[str]) -> None:
    assert [word for word in split_words(text) if is_word(word)] == expected


def test_long_words_are_cut() -> None:
    assert list(map(len, split_words("a" * 600 + " b"))) == [255, 255, 90, 1]
    assert list(map(len, split_words("é" * 256))) == [255, 1]
    assert list(map(len, split_words("é" * 255))) == [255]
    assert split_words("a" * 254 + ":bc") == ["a" * 254, "bc"]


def test_both_ways_find_the_same_words_in_ascii() -> None:
    stream = random.Random(0)
    for _ in range(5000):
        text = "".join(stream.choices("ab12_:.,;'\"# -A", k=stream.randint(1, 14)))
        marked = split_words(text + " é")
        assert list(filter(is_word, split_words(text))) == list(filter(is_word, marked[:-1]))


def test_every_character_has_a_kind() -> None:
    points = {*range(0x300), *range(0x300, sys.maxunicode + 1, 401), 0x5D0, 0x30A2, 0x1F1E6}
    points |= {ord(character) for character in "\u200d\ufe0f\u20e3🏽❤"}
    assert {kind(chr(point)) for point in points} == set(KINDS)


@pytest.mark.parametrize(
    "piece",
    [
        "_",
        "a_",
        "é_",
        "é:a",
        "_\u0301",
        "❤\u200d",
        "\u200d",
        "#\u0301",
        "é",
        "א'",
        'א"',
        "\0",
        "a:",
    ],
    ids=ascii,
)
def test_a_hundred_thousand_characters_take_no_time(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    start = time.process_time()
    analyze(text)
    assert time.process_time() - start < 2


def test_terms() -> None:
    assert len(STOP_WORDS) == 33
    assert analyze("The Women's running shoes, with NO laces") == ["women", "run", "shoe", "lace"]
    assert analyze("KIDS’S dog＇S 'S a's 's") == ["kid", "dog", "s", "s"]
    assert analyze("The's and IT'S") == []
    assert analyze("İs İx ΣΑΣ É") == ["ix", "σασ", "é"]
    assert analyze("") == []


def test_letters_beyond_16_bits_count_twice_for_the_stemmer() -> None:
    assert unicodedata.category("𝐚") == "Ll"
    assert analyze("𝐚s 𝐚 és") == ["𝐚", "𝐚", "és"]
