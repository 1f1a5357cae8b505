"""The short form of every sentence."""

import pytest

from rewardswap.envs.alfworld.engine import HELP
from rewardswap.envs.alfworld.wording import FIXED_WORDS, plain_words, shorten

PAIRS = [
    ("Nothing happens.", "nothing happens ."),
    (
        "You arrive at sinkbasin 1. On the sinkbasin 1, you see a cup 1, and a knife 12.",
        "at sinkbasin 1 you see cup 1 knife 12 .",
    ),
    ("You arrive at shelf 2. On the shelf 2, you see nothing.", "at shelf 2 you see nothing ."),
    ("You arrive at cabinet 1. The cabinet 1 is closed.", "at cabinet 1 closed ."),
    (
        "You arrive at safe 1. The safe 1 is open. In it, you see a cd 3.",
        "at safe 1 open you see cd 3 .",
    ),
    (
        "You open the drawer 1. The drawer 1 is open. In it, you see a watch 3, and a watch 2.",
        "drawer 1 open you see watch 3 watch 2 .",
    ),
    ("You close the drawer 1.", "drawer 1 closed ."),
    ("You pick up the mug 2 from the shelf 1.", "took mug 2 from shelf 1 ."),
    ("You move the mug 2 to the shelf 1.", "moved mug 2 to shelf 1 ."),
    ("You clean the mug 2 using the sinkbasin 1.", "cleaned mug 2 with sinkbasin 1 ."),
    ("You heat the mug 2 using the microwave 1.", "heated mug 2 with microwave 1 ."),
    ("You cool the mug 2 using the fridge 1.", "cooled mug 2 with fridge 1 ."),
    ("You sliced the egg 2 with the knife 1.", "sliced egg 2 with knife 1 ."),
    ("You turn on the desklamp 1.", "turned on desklamp 1 ."),
    ("You are not carrying anything.", "carrying nothing ."),
    ("You are carrying: a mug 1.", "carrying mug 1 ."),
    ("On the bed 1, you see a book 1, a cd 2, and a cd 1.", "bed 1 you see book 1 cd 2 cd 1 ."),
    ("The safe 1 is closed.", "safe 1 closed ."),
    ("The safe 1 is open. In it, you see nothing.", "safe 1 open you see nothing ."),
    (
        "You are facing the desk 1, and drawer 2. Next to it, you see a pen 1.",
        "facing desk 1 drawer 2 next to it you see pen 1 .",
    ),
    (
        "You are in the middle of a room. Looking quickly around you, you see nothing.",
        "you see nothing .",
    ),
    (
        "This is a normal pot 2. In it, you see a pan 1, and a pan 2.",
        "normal pot 2 in it you see pan 1 pan 2 .",
    ),
    ("This is a hot and clean sliced apple 1.", "hot and clean sliced apple 1 ."),
    ("This is a cold apple 1.", "cold apple 1 ."),
    ("This desklamp 1 is on.", "desklamp 1 on ."),
    ("There's nothing special about watch 1.", "nothing special about watch 1 ."),
    (HELP, "commands : look inventory go open close take move examine use heat clean cool slice ."),
    (
        "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. Looking quickly "
        "around you, you see a bed 1, and a safe 1.\n\nYour task is to: put a clean mug in safe.",
        "you see bed 1 safe 1 . task : put a clean mug in safe .",
    ),
]


@pytest.mark.parametrize(("text", "short"), PAIRS, ids=[short for _, short in PAIRS])
def test_short_form(text: str, short: str) -> None:
    assert shorten(text) == short


def test_the_fixed_words_are_all_there_is_beside_names_and_task() -> None:
    for _, short in PAIRS[:-1]:
        words = short.split()
        before_number = {k - 1 for k, word in enumerate(words) if word.isdigit()}
        for k, word in enumerate(words):
            assert word.isdigit() or k in before_number or word in FIXED_WORDS, (short, word)


@pytest.mark.parametrize("text", ["", "You see a mug 1.", "You open the drawer 1."])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no short form for"):
        shorten(text)


def test_plain_words() -> None:
    assert plain_words("Put two CDs in the  safe, now.") == "put two cds in the safe , now ."
