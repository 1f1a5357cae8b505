"""Which goals a room can have, and how the task is said."""

from functools import cache
from random import Random

from rewardswap.envs.alfworld.affordances import ACCEPTS, FURNITURE, KINDS_WITH, MOVABLES
from rewardswap.envs.alfworld.game import PROCESSED_BY, TASK_TYPES, Goal

SENTENCES = {
    "pick_and_place_simple": (
        "put a {object} in {receptacle}.",
        "put some {object} on {receptacle}.",
    ),
    "look_at_obj_in_light": (
        "look at {object} under the {lamp}.",
        "examine the {object} with the {lamp}.",
    ),
    "pick_clean_then_place_in_recep": (
        "put a clean {object} in {receptacle}.",
        "clean some {object} and put it in {receptacle}.",
    ),
    "pick_heat_then_place_in_recep": (
        "put a hot {object} in {receptacle}.",
        "heat some {object} and put it in {receptacle}.",
    ),
    "pick_cool_then_place_in_recep": (
        "put a cool {object} in {receptacle}.",
        "cool some {object} and put it in {receptacle}.",
    ),
    "pick_two_obj_and_place": (
        "put two {object} in {receptacle}.",
        "find two {object} and put them in {receptacle}.",
    ),
}
"""The two wordings of each task type in the official games."""

LAMP_ROOMS = ("living", "bedroom")
"""Room kinds in which the official games have a desk lamp."""


@cache
def goals_of(room: str, task_type: str) -> tuple[Goal, ...]:
    """All goals of a type that a room kind can hold with another place for the target to start."""
    if task_type == "look_at_obj_in_light":
        if room not in LAMP_ROOMS:
            return ()
        return tuple(Goal(task_type, kind, None, "DeskLamp") for kind in MOVABLES[room])
    affordance, processor = PROCESSED_BY.get(task_type, ("", ""))
    if processor and processor not in FURNITURE[room]:
        return ()
    goals: list[Goal] = []
    for kind in MOVABLES[room]:
        if affordance and kind not in KINDS_WITH[affordance]:
            continue
        places = [place for place in FURNITURE[room] if kind in ACCEPTS[place]]
        if len(places) > 1:
            goals += [Goal(task_type, kind, place) for place in places if place != processor]
    return tuple(goals)


@cache
def rooms_with(task_type: str, rooms: tuple[str, ...]) -> tuple[str, ...]:
    """The room kinds among `rooms` that can have a task of this type; ValueError if none can."""
    if task_type not in TASK_TYPES:
        raise ValueError(f"unknown task type {task_type!r}, choose from {list(TASK_TYPES)}")
    suitable = tuple(room for room in rooms if goals_of(room, task_type))
    if not suitable:
        raise ValueError(f"none of the rooms {list(rooms)} has a task of type {task_type!r}")
    return suitable


@cache
def possible_types(rooms: tuple[str, ...]) -> tuple[str, ...]:
    """The task types that at least one of the room kinds can have."""
    return tuple(t for t in TASK_TYPES if any(goals_of(room, t) for room in rooms))


def sentence(random: Random, goal: Goal) -> str:
    """The task in one of its two wordings."""
    return random.choice(SENTENCES[goal.task_type]).format(
        object=goal.object_kind.lower(),
        receptacle=(goal.receptacle_kind or "").lower(),
        lamp=(goal.lamp_kind or "").lower(),
    )
