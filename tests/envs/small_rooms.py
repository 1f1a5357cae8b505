"""Rooms small enough to work every answer out by hand."""

from dataclasses import replace

from rewardswap.envs.alfworld.game import Game, GameObject, Goal, Receptacle

PLACES = (
    Receptacle("Cabinet_bar_1", "Cabinet", "loc_1", openable=True),
    Receptacle("CounterTop_bar_1", "CounterTop", "loc_2", openable=False),
    Receptacle("Shelf_bar_1", "Shelf", "loc_2", openable=False),
    Receptacle("Sink_bar_1_bar_SinkBasin", "SinkBasin", "loc_3", openable=False),
    Receptacle("Microwave_bar_1", "Microwave", "loc_4", openable=True),
    Receptacle("Fridge_bar_1", "Fridge", "loc_5", openable=True),
)
COOKABLE = frozenset({"pickupable", "cleanable", "heatable", "coolable"})
FOOD = COOKABLE | {"sliceable"}

MUG = GameObject("Mug_bar_1", "Mug", ("CounterTop_bar_1",), "loc_2", COOKABLE, is_container=True)
THINGS = (
    MUG,
    replace(MUG, id="Mug_bar_2", receptacles=("Cabinet_bar_1",), location="loc_1"),
    GameObject("Apple_bar_1", "Apple", ("CounterTop_bar_1",), "loc_2", FOOD),
    GameObject(
        *("Knife_bar_1", "Knife", ("CounterTop_bar_1",), "loc_2"),
        affordances=frozenset({"pickupable", "cleanable"}),
        inside=("Mug_bar_1",),
    ),
    GameObject("DeskLamp_bar_1", "DeskLamp", ("Shelf_bar_1",), "loc_2", frozenset({"toggleable"})),
    GameObject("Chair_bar_1", "Chair", location="loc_2"),
)
CAN_CONTAIN = frozenset(
    (place, thing)
    for place in ("Cabinet", "CounterTop", "Shelf", "SinkBasin", "Microwave", "Fridge")
    for thing in ("Mug", "Apple", "Knife")
    if (place, thing) not in {("Microwave", "Knife"), ("Fridge", "Knife")}
)

PICK = Goal("pick_and_place_simple", "Mug", "Shelf")


def kitchen(goal: Goal = PICK, **changes: object) -> Game:
    """Six places, two of them side by side; two mugs, an apple, a knife, a lamp and a chair."""
    game = Game(
        task="put some mug on shelf.",
        goal=goal,
        receptacles=PLACES,
        objects=THINGS,
        start_location="loc_0",
        can_contain=CAN_CONTAIN,
    )
    return replace(game, **changes)


def closet(**changes: object) -> Game:
    """Two places side by side and one apart; an apple, a knife and a mug: few enough states."""
    places = (
        Receptacle("Shelf_bar_1", "Shelf", "loc_1", openable=False),
        Receptacle("Shelf_bar_2", "Shelf", "loc_1", openable=False),
        Receptacle("Fridge_bar_1", "Fridge", "loc_2", openable=True),
    )
    things = (
        GameObject("Apple_bar_1", "Apple", ("Shelf_bar_1",), "loc_1", FOOD - {"cleanable"}),
        GameObject("Knife_bar_1", "Knife", ("Shelf_bar_1",), "loc_1", frozenset({"pickupable"})),
    )
    game = Game(
        task="put some apple on fridge.",
        goal=Goal("pick_and_place_simple", "Apple", "Fridge"),
        receptacles=places,
        objects=things,
        start_location="loc_0",
        can_contain=frozenset({("Shelf", "Apple"), ("Shelf", "Knife"), ("Fridge", "Apple")}),
    )
    return replace(game, **changes)
