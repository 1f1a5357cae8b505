"""Winning, and the share of the ordered sub-goals on the way."""

from dataclasses import replace

import pytest
from small_rooms import MUG, THINGS, kitchen

from rewardswap.envs.alfworld.engine import NOTHING_HAPPENS, TextEngine
from rewardswap.envs.alfworld.game import Goal

WINS = {
    "pick_and_place_simple": (
        Goal("pick_and_place_simple", "Mug", "Shelf"),
        ["go to shelf 1", "take mug 2 from countertop 1", "move mug 2 to shelf 1"],
        [0, 1 / 2, 1],
    ),
    "look_at_obj_in_light": (
        Goal("look_at_obj_in_light", "Mug", lamp_kind="DeskLamp"),
        ["go to shelf 1", "take mug 2 from countertop 1", "use desklamp 1"],
        [0, 1 / 2, 1],
    ),
    "pick_heat_then_place_in_recep": (
        Goal("pick_heat_then_place_in_recep", "Mug", "Shelf"),
        [
            *("go to shelf 1", "take mug 2 from countertop 1", "go to microwave 1"),
            *("heat mug 2 with microwave 1", "go to shelf 1", "move mug 2 to shelf 1"),
        ],
        [0, 1 / 3, 1 / 3, 2 / 3, 2 / 3, 1],
    ),
    "pick_two_obj_and_place": (
        Goal("pick_two_obj_and_place", "Mug", "Shelf"),
        [
            *("go to shelf 1", "take mug 2 from countertop 1", "move mug 2 to shelf 1"),
            *("go to cabinet 1", "open cabinet 1", "take mug 1 from cabinet 1"),
            *("go to shelf 1", "move mug 1 to shelf 1"),
        ],
        [0, 1 / 4, 1 / 2, 1 / 2, 1 / 2, 3 / 4, 3 / 4, 1],
    ),
}


@pytest.mark.parametrize("task_type", WINS)
def test_winning_and_progress(task_type: str) -> None:
    goal, commands, progress = WINS[task_type]
    engine = TextEngine(kitchen(goal))
    assert (engine.won, engine.progress) == (False, 0.0)
    for k, command in enumerate(commands):
        assert engine.step(command) != NOTHING_HAPPENS
        assert engine.progress == pytest.approx(progress[k])
        assert engine.won == (k == len(commands) - 1)


def test_a_lamp_lit_earlier_counts_as_long_as_it_is_at_hand() -> None:
    goal = Goal("look_at_obj_in_light", "Mug", lamp_kind="DeskLamp")
    engine = TextEngine(kitchen(goal))
    engine.step("go to shelf 1")
    engine.step("use desklamp 1")
    assert engine.progress == 0.0
    engine.step("take mug 2 from countertop 1")
    assert engine.won
    engine.step("go to fridge 1")
    assert (engine.won, engine.progress) == (False, 0.5)


def test_unprocessed_placing_neither_wins_nor_progresses() -> None:
    goal = Goal("pick_clean_then_place_in_recep", "Mug", "Shelf")
    engine = TextEngine(kitchen(goal))
    for command in ("go to shelf 1", "take mug 2 from countertop 1", "move mug 2 to shelf 1"):
        engine.step(command)
    assert (engine.won, engine.progress) == (False, 0.0)


def test_one_of_two_in_place_at_the_start_is_progress_zero() -> None:
    placed = replace(MUG, receptacles=("Shelf_bar_1",))
    game = kitchen(Goal("pick_two_obj_and_place", "Mug", "Shelf"), objects=(placed, THINGS[1]))
    engine = TextEngine(game)
    assert engine.progress == 0.0
    for command in ("go to cabinet 1", "open cabinet 1", "take mug 1 from cabinet 1"):
        engine.step(command)
    assert engine.progress == pytest.approx(0.5)  # stage 3 of 4, 2 of them given: 1 of 2


def test_a_game_that_is_won_at_the_start_has_full_progress() -> None:
    placed = replace(MUG, receptacles=("Shelf_bar_1",))
    engine = TextEngine(kitchen(objects=(placed,)))
    assert (engine.won, engine.progress) == (True, 1.0)
