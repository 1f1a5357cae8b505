"""What the engine says in a room worked out by hand; the official words are in the golden test."""

from dataclasses import replace

import pytest
from small_rooms import MUG, PLACES, THINGS, closet, kitchen

from rewardswap.envs.alfworld.engine import HELP, NOTHING_HAPPENS, TextEngine
from rewardswap.envs.alfworld.game import Game, Goal


def played(game: Game, *commands: str) -> TextEngine:
    engine = TextEngine(game)
    for command in commands:
        assert engine.step(command) != NOTHING_HAPPENS, command
    return engine


def test_the_first_words() -> None:
    assert TextEngine(kitchen()).reset() == (
        "-= Welcome to TextWorld, ALFRED! =-\n\n"
        "You are in the middle of a room. Looking quickly around you, you see a cabinet 1, a "
        "countertop 1, a fridge 1, a microwave 1, a shelf 1, and a sinkbasin 1.\n\n"
        "Your task is to: put some mug on shelf."
    )


def test_admissible_at_the_start() -> None:
    assert TextEngine(kitchen()).admissible == [
        "go to cabinet 1",
        "go to countertop 1",
        "go to fridge 1",
        "go to microwave 1",
        "go to shelf 1",
        "go to sinkbasin 1",
        "help",
        "inventory",
        "look",
    ]


def test_look_before_the_first_move_sees_nothing() -> None:
    assert TextEngine(kitchen()).step("look") == (
        "You are in the middle of a room. Looking quickly around you, you see nothing."
    )


def test_places_side_by_side_are_both_at_hand() -> None:
    engine = TextEngine(kitchen())
    assert engine.step("go to countertop 1") == (
        "You arrive at countertop 1. On the countertop 1, you see a apple 1, a knife 1, "
        "and a mug 2."
    )
    assert engine.admissible == [
        "examine countertop 1",
        "examine shelf 1",
        "go to cabinet 1",
        "go to fridge 1",
        "go to microwave 1",
        "go to sinkbasin 1",
        "help",
        "inventory",
        "look",
        "take apple 1 from countertop 1",
        "take knife 1 from countertop 1",
        "take mug 2 from countertop 1",
        "use desklamp 1",
    ]
    assert engine.step("look") == (
        "You are facing the countertop 1, and shelf 1. Next to it, you see nothing."
    )


def test_look_lists_what_was_moved_away_from_a_place_beside() -> None:
    engine = played(
        kitchen(),
        *("go to shelf 1", "take apple 1 from countertop 1", "move apple 1 to shelf 1"),
    )
    answer = "You are facing the countertop 1, and shelf 1. Next to it, you see a apple 1."
    assert engine.step("look") == answer
    engine.step("take apple 1 from shelf 1")
    assert engine.step("look").endswith("Next to it, you see nothing.")


def test_open_and_close() -> None:
    engine = TextEngine(kitchen())
    assert engine.step("go to cabinet 1") == "You arrive at cabinet 1. The cabinet 1 is closed."
    assert "close cabinet 1" not in engine.admissible
    assert "take mug 1 from cabinet 1" not in engine.admissible
    assert engine.step("open cabinet 1") == (
        "You open the cabinet 1. The cabinet 1 is open. In it, you see a mug 1."
    )
    assert engine.step("open cabinet 1") == NOTHING_HAPPENS
    assert engine.step("take mug 1 from cabinet 1") == "You pick up the mug 1 from the cabinet 1."
    assert engine.step("examine cabinet 1") == "The cabinet 1 is open. In it, you see nothing."
    assert engine.step("close cabinet 1") == "You close the cabinet 1."
    assert engine.step("move mug 1 to cabinet 1") == NOTHING_HAPPENS
    assert engine.step("inventory") == "You are carrying: a mug 1."


@pytest.mark.parametrize(
    "command",
    [
        *("", "LOOK", "Look", "go  to shelf 1", "go to shelf 9", "go to", "take", "dance"),
        *("take mug 2 from countertop 1", "put mug 2 in/on shelf 1", "examine shelf 1"),
    ],
)
def test_whatever_is_not_admissible_changes_nothing(command: str) -> None:
    engine = TextEngine(kitchen())
    before = engine.state_key, list(engine.admissible)
    assert not engine.is_admissible(command)
    assert engine.step(command) == NOTHING_HAPPENS
    assert (engine.state_key, engine.admissible) == before


def test_spaces_around_a_command_do_not_matter() -> None:
    engine = TextEngine(kitchen())
    assert engine.is_admissible("  inventory\n")
    assert engine.step("  inventory\n") == "You are not carrying anything."
    assert engine.step("help ") == HELP


def test_one_hand_only() -> None:
    engine = played(kitchen(), "go to countertop 1", "take mug 2 from countertop 1")
    assert engine.step("take apple 1 from countertop 1") == NOTHING_HAPPENS


def test_what_may_lie_where() -> None:
    engine = played(
        kitchen(), "go to countertop 1", "take knife 1 from countertop 1", "go to fridge 1"
    )
    engine.step("open fridge 1")
    assert "move knife 1 to fridge 1" not in engine.admissible


def test_hot_undoes_cool_and_clean_stays() -> None:
    engine = played(kitchen(), "go to shelf 1", "take apple 1 from countertop 1")
    assert engine.step("examine apple 1") == "There's nothing special about apple 1."
    engine.step("go to fridge 1")
    assert engine.step("cool apple 1 with fridge 1") == "You cool the apple 1 using the fridge 1."
    assert engine.step("examine apple 1") == "This is a cold apple 1."
    engine.step("go to sinkbasin 1")
    engine.step("clean apple 1 with sinkbasin 1")
    assert engine.step("examine apple 1") == "This is a cool and clean apple 1."
    engine.step("go to microwave 1")
    engine.step("heat apple 1 with microwave 1")
    assert engine.step("examine apple 1") == "This is a hot and clean apple 1."


def test_slicing() -> None:
    engine = played(kitchen(), "go to shelf 1", "take knife 1 from countertop 1")
    assert engine.step("slice apple 1 with knife 1") == "You sliced the apple 1 with the knife 1."
    engine.step("move knife 1 to shelf 1")
    engine.step("take apple 1 from countertop 1")
    assert engine.step("examine apple 1") == "This is a sliced apple 1."


def test_a_container_tells_what_is_in_it() -> None:
    engine = played(kitchen(), "go to shelf 1", "take mug 2 from countertop 1")
    assert engine.step("examine mug 2") == "This is a normal mug 2. In it, you see a knife 1."


def test_a_lamp_is_only_ever_turned_on() -> None:
    engine = played(kitchen(), "go to shelf 1")
    assert engine.step("use desklamp 1") == "You turn on the desklamp 1."
    assert engine.step("use desklamp 1") == "You turn on the desklamp 1."


def test_an_object_in_two_places_can_be_taken_from_either() -> None:
    both = replace(MUG, receptacles=("CounterTop_bar_1", "Shelf_bar_1"))
    engine = played(kitchen(Goal("pick_and_place_simple", "Apple", "Shelf"), objects=(both,)))
    engine.step("go to shelf 1")
    takes = [command for command in engine.admissible if command.startswith("take")]
    assert takes == ["take mug 1 from countertop 1", "take mug 1 from shelf 1"]
    engine.step(takes[0])
    assert engine.step("examine shelf 1") == "On the shelf 1, you see a mug 1."


def test_reset_forgets_everything() -> None:
    engine = TextEngine(kitchen())
    first = engine.reset(), list(engine.admissible), engine.state_key
    for command in ("go to cabinet 1", "open cabinet 1", "take mug 1 from cabinet 1"):
        engine.step(command)
    assert (engine.reset(), engine.admissible, engine.state_key) == first


def test_a_start_at_a_receptacle_faces_it() -> None:
    engine = TextEngine(closet(start_location="loc_2"))
    assert "\n\nYou are facing the fridge 1. Next to it, you see nothing.\n\n" in engine.reset()


def test_the_order_of_the_facts_does_not_matter() -> None:
    game = kitchen()
    other = kitchen(receptacles=PLACES[::-1], objects=THINGS[::-1])
    one, two = TextEngine(game), TextEngine(other)
    for command in ("go to shelf 1", "take mug 2 from countertop 1", "go to sinkbasin 1"):
        assert one.step(command) == two.step(command)
        assert (one.admissible, one.state_key) == (two.admissible, two.state_key)
