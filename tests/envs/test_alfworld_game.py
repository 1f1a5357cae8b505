"""Names, numbers and the identity of a game."""

from dataclasses import replace

import pytest
from small_rooms import CAN_CONTAIN, MUG, PLACES, THINGS, kitchen

from rewardswap.envs.alfworld.game import Goal, Receptacle, display_name, game_id
from rewardswap.envs.alfworld.layout import Layout, numbered_names


@pytest.mark.parametrize(
    ("id", "name"),
    [
        ("Mug_bar__plus_02_dot_04", "mug"),
        ("Sink_bar_1_bar_SinkBasin", "sinkbasin"),
        ("Bathtub_bar_1_bar_BathtubBasin", "bathtubbasin"),
        ("Sink_bar_1", "sink"),
    ],
)
def test_display_name(id: str, name: str) -> None:
    assert display_name(id) == name


def test_a_name_without_a_bar_is_refused() -> None:
    with pytest.raises(ValueError, match="'Curtains' has no '_bar_'"):
        display_name("Curtains")


def test_numbers_descend_in_sorted_order() -> None:
    ids = ["Mug_bar_3", "Sink_bar_2_bar_SinkBasin", "Mug_bar_1", "Mug_bar_2", "Sink_bar_1"]
    assert numbered_names(ids) == {
        "Mug_bar_1": "mug 3",
        "Mug_bar_2": "mug 2",
        "Mug_bar_3": "mug 1",
        "Sink_bar_1": "sink 1",
        "Sink_bar_2_bar_SinkBasin": "sinkbasin 1",
    }


def test_twin_ids_are_refused() -> None:
    with pytest.raises(ValueError, match="'mug_bar_1'"):
        numbered_names(["Mug_bar_1", "mug_bar_1"])


def test_an_object_in_an_unknown_receptacle_is_refused() -> None:
    lost = replace(MUG, receptacles=("Shelf_bar_9",))
    with pytest.raises(ValueError, match="'Mug_bar_1' is in an unknown thing 'Shelf_bar_9'"):
        Layout(kitchen(objects=(lost,)))


def test_the_id_ignores_order_and_walkthrough() -> None:
    game = kitchen()
    same = replace(
        game,
        receptacles=game.receptacles[::-1],
        objects=game.objects[::-1],
        walkthrough=("look",),
    )
    assert game_id(game) == game_id(same)
    assert len(game_id(game)) == 16 and set(game_id(game)) <= set("0123456789abcdef")


@pytest.mark.parametrize(
    "change",
    [
        {"task": "put a mug on shelf."},
        {"goal": Goal("pick_and_place_simple", "Mug", "Cabinet")},
        {"goal": Goal("pick_heat_then_place_in_recep", "Mug", "Shelf")},
        {"receptacles": PLACES[:-1]},
        {"receptacles": (replace(PLACES[0], openable=False), *PLACES[1:])},
        {"receptacles": (replace(PLACES[0], location="loc_9"), *PLACES[1:])},
        {"receptacles": (replace(PLACES[0], kind="Safe"), *PLACES[1:])},
        {"objects": THINGS[1:]},
        {"objects": (replace(MUG, receptacles=("Shelf_bar_1",)), *THINGS[1:])},
        {"objects": (replace(MUG, kind="Cup"), *THINGS[1:])},
        {"objects": (replace(MUG, location="loc_9"), *THINGS[1:])},
        {"objects": (replace(MUG, location=None), *THINGS[1:])},
        {"objects": (replace(MUG, affordances=frozenset()), *THINGS[1:])},
        {"objects": (replace(MUG, is_cool=True), *THINGS[1:])},
        {"objects": (replace(MUG, is_container=False), *THINGS[1:])},
        {"objects": (replace(MUG, inside=("Mug_bar_2",)), *THINGS[1:])},
        {"start_location": "loc_9"},
        {"can_contain": CAN_CONTAIN - {("Shelf", "Mug")}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_the_id_tells_every_fact(change: dict[str, object]) -> None:
    assert game_id(kitchen(**change)) != game_id(kitchen())


def test_goals_are_checked() -> None:
    with pytest.raises(ValueError, match="unknown task type 'stack'"):
        Goal("stack", "Mug", "Shelf")
    with pytest.raises(ValueError, match="needs a lamp kind"):
        Goal("look_at_obj_in_light", "Mug", "Shelf")
    with pytest.raises(ValueError, match="needs a receptacle kind only"):
        Goal("pick_and_place_simple", "Mug", None, "DeskLamp")


def test_receptacles_that_share_a_place_are_found_together() -> None:
    layout = Layout(kitchen())
    assert layout.receptacles_at[layout.location_of[1]] == (1, 4)  # CounterTop and Shelf
    assert isinstance(layout.receptacles[4], Receptacle)
    assert layout.receptacles[4].kind == "Shelf"
