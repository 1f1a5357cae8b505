"""A state key is equal exactly where no future answer can differ, over every reachable state."""

import copy
from collections import defaultdict
from dataclasses import replace

import pytest
from small_rooms import closet

from rewardswap.envs.alfworld.engine import TextEngine
from rewardswap.envs.alfworld.game import Game, GameObject, Goal
from rewardswap.envs.alfworld.state import WorldState

APPLE, KNIFE = closet().objects
PLAIN = frozenset({"pickupable"})
LAMP = GameObject(
    "DeskLamp_bar_1", "DeskLamp", ("Shelf_bar_2",), "loc_1", frozenset({"toggleable"})
)
COOL = Goal("pick_cool_then_place_in_recep", "Apple", "Shelf")
ROOMS = {
    "plain": closet(),
    "apple located elsewhere": closet(
        objects=(replace(APPLE, receptacles=("Fridge_bar_1",)), KNIFE)
    ),
    "apple in two places": closet(
        objects=(
            replace(APPLE, receptacles=("Fridge_bar_1", "Shelf_bar_2"), affordances=PLAIN),
            KNIFE,
        )
    ),
    "container": closet(objects=(replace(APPLE, is_container=True), KNIFE)),
    "cold goal object that is a container": closet(
        goal=COOL, objects=(replace(APPLE, is_container=True, is_cool=True), KNIFE)
    ),
    "lamp": closet(
        goal=Goal("look_at_obj_in_light", "Apple", lamp_kind="DeskLamp"), objects=(APPLE, LAMP)
    ),
    "lamp that is no goal": closet(objects=(APPLE, LAMP)),
    "two apples": closet(
        goal=Goal("pick_two_obj_and_place", "Apple", "Shelf"),
        objects=(APPLE, replace(APPLE, id="Apple_bar_2", affordances=PLAIN)),
    ),
}


def facts(engine: TextEngine) -> str:
    state = engine.state
    return repr(
        [
            *(state.location, state.held, sorted(state.opened), state.contents),
            *([sorted(places) for places in state.locations], state.marks, sorted(state.left)),
        ]
    )


def branch(engine: TextEngine) -> TextEngine:
    """An engine in the same state that may go another way."""
    other, state = copy.copy(engine), copy.copy(engine.state)
    for name in WorldState.__slots__:
        value = getattr(state, name)
        if isinstance(value, list | set):
            setattr(state, name, value.copy())
    other.state = state
    return other


def explore(game: Game) -> tuple[list[str], list[list[tuple[str, str, int]]]]:
    """Every reachable state: its key, and per command the answer and the next state's number."""
    engines, numbers = [TextEngine(game)], {facts(TextEngine(game)): 0}
    keys, edges = [], []
    for engine in engines:
        row = []
        for command in engine.admissible:
            after = branch(engine)
            answer = after.step(command)
            number = numbers.setdefault(facts(after), len(engines))
            if number == len(engines):
                engines.append(after)
            row.append((command, answer, number))
        keys.append(engine.state_key)
        edges.append([*row, ("won", str(engine.won), 0)])
    return keys, edges


def distinguishable(edges: list[list[tuple[str, str, int]]]) -> list[int]:
    """Moore's partition refinement: equal numbers where no sequence of commands tells a state."""
    block, count = [0] * len(edges), 1
    while True:
        names: dict[tuple[tuple[str, str, int], ...], int] = {}
        block = [
            names.setdefault(tuple((c, a, block[n]) for c, a, n in row), len(names))
            for row in edges
        ]
        if len(names) == count:
            return block
        count = len(names)


@pytest.mark.parametrize("room", ROOMS)
def test_the_key_is_exact(room: str) -> None:
    keys, edges = explore(ROOMS[room])
    blocks = distinguishable(edges)
    by_key, by_block = defaultdict(set), defaultdict(set)
    for key, block in zip(keys, blocks, strict=True):
        by_key[key].add(block)
        by_block[block].add(key)
    assert all(len(told) == 1 for told in by_key.values())
    assert all(len(told) == 1 for told in by_block.values())
