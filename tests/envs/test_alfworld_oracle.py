"""The oracle's plans, and what it says of games that nobody can win."""

from dataclasses import replace

import pytest
from small_rooms import CAN_CONTAIN, MUG, PLACES, THINGS, kitchen

from rewardswap.envs.alfworld.engine import TextEngine
from rewardswap.envs.alfworld.game import Game, Goal, game_id
from rewardswap.envs.alfworld.oracle import solve

CABINET_FIRST = ["go to cabinet 1", "open cabinet 1"]
SHELF_LAST = ["go to shelf 1", "move mug 2 to shelf 1"]


@pytest.mark.parametrize(
    ("goal", "plan"),
    [
        (
            Goal("pick_and_place_simple", "Mug", "Shelf"),
            ["go to countertop 1", "take mug 2 from countertop 1", "move mug 2 to shelf 1"],
        ),
        (
            Goal("pick_and_place_simple", "Apple", "Cabinet"),
            [
                *("go to countertop 1", "take apple 1 from countertop 1"),
                *(*CABINET_FIRST, "move apple 1 to cabinet 1"),
            ],
        ),
        (
            Goal("look_at_obj_in_light", "Mug", lamp_kind="DeskLamp"),
            ["go to countertop 1", "take mug 2 from countertop 1", "use desklamp 1"],
        ),
        (
            Goal("pick_cool_then_place_in_recep", "Mug", "Shelf"),
            [
                *("go to countertop 1", "take mug 2 from countertop 1"),
                *("go to fridge 1", "cool mug 2 with fridge 1", *SHELF_LAST),
            ],
        ),
        (
            Goal("pick_two_obj_and_place", "Mug", "Shelf"),
            [
                *(*CABINET_FIRST, "take mug 1 from cabinet 1"),
                *("go to shelf 1", "move mug 1 to shelf 1"),  # the countertop is beside the shelf
                *("take mug 2 from countertop 1", "move mug 2 to shelf 1"),
            ],
        ),
    ],
    ids=lambda value: value.task_type if isinstance(value, Goal) else "",
)
def test_plans(goal: Goal, plan: list[str]) -> None:
    assert solve(kitchen(goal)) == plan


def test_every_command_of_a_plan_is_admissible_and_the_last_wins() -> None:
    game = kitchen(Goal("pick_heat_then_place_in_recep", "Apple", "Fridge"))
    engine = TextEngine(game)
    for command in solve(game):
        assert not engine.won
        assert engine.is_admissible(command)
        engine.step(command)
    assert engine.won


def test_a_won_game_needs_no_command() -> None:
    placed = replace(MUG, receptacles=("Shelf_bar_1",))
    assert solve(kitchen(objects=(placed,))) == []


def test_a_cold_object_is_not_cooled_again() -> None:
    cold = replace(MUG, is_cool=True)
    game = kitchen(Goal("pick_cool_then_place_in_recep", "Mug", "Shelf"), objects=(cold,))
    assert [command.split()[0] for command in solve(game)] == ["go", "take", "move"]


@pytest.mark.parametrize(
    ("game", "lack"),
    [
        (kitchen(Goal("pick_and_place_simple", "Plate", "Shelf")), "it needs 1 Plate to pick up"),
        (kitchen(Goal("pick_two_obj_and_place", "Apple", "Shelf")), "it needs 2 Apple"),
        (kitchen(Goal("pick_and_place_simple", "Mug", "Bed")), "it has no Bed"),
        (
            kitchen(Goal("pick_heat_then_place_in_recep", "Mug", "Shelf"), receptacles=PLACES[:4]),
            "no receptacle to heat something with",
        ),
        (
            kitchen(Goal("look_at_obj_in_light", "Mug", lamp_kind="FloorLamp")),
            "no toggleable FloorLamp",
        ),
        (
            kitchen(can_contain=CAN_CONTAIN - {("Shelf", "Mug")}),
            "no Shelf may hold 1 Mug",
        ),
        (
            kitchen(objects=tuple(replace(t, affordances=frozenset()) for t in THINGS)),
            "it needs 1 Mug to pick up",
        ),
    ],
)
def test_an_unsolvable_game_says_what_it_lacks(game: Game, lack: str) -> None:
    game = replace(game, objects=tuple(t for t in game.objects if lives(t.receptacles, game)))
    with pytest.raises(ValueError, match=rf"game {game_id(game)} .* cannot be won: .*{lack}"):
        solve(game)


def lives(receptacles: tuple[str, ...], game: Game) -> bool:
    return set(receptacles) <= {place.id for place in game.receptacles}
