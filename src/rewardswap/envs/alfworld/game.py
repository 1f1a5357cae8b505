"""What a text game of ALFWorld (Shridhar et al., arXiv:2010.03768) consists of, as plain data."""

import hashlib
import json
from dataclasses import dataclass

TASK_TYPES = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)
"""The six task types of ALFWorld in the order of their official ids 1 to 6."""

AFFORDANCES = ("pickupable", "cleanable", "heatable", "coolable", "toggleable", "sliceable")
"""What can be done with an object; names of predicates in ALFWorld's PDDL domain."""

PROCESSED_BY = {
    "pick_clean_then_place_in_recep": ("cleanable", "SinkBasin"),
    "pick_heat_then_place_in_recep": ("heatable", "Microwave"),
    "pick_cool_then_place_in_recep": ("coolable", "Fridge"),
}
"""Task types with a process: the affordance asked for and the receptacle kind that does it."""


@dataclass(frozen=True, slots=True)
class Receptacle:
    """A place that holds objects."""

    id: str
    """PDDL name, e.g. `Sink_bar_x_bar_SinkBasin`; `display_name` reads the spoken name from it."""
    kind: str
    """Its rtype without the ending "Type", e.g. "SinkBasin"."""
    location: str
    """Where the agent stands when it is at hand; several receptacles may share one."""
    openable: bool


@dataclass(frozen=True, slots=True)
class GameObject:
    """A thing of the room."""

    id: str
    """PDDL name, e.g. `Mug_bar_x`; the spoken name is the part before `_bar_`."""
    kind: str
    """Its otype without the ending "Type"; empty if the facts give none (it only counts)."""
    receptacles: tuple[str, ...] = ()
    """Ids of the receptacles that it is in: usually one; the official games have up to four."""
    location: str | None = None
    """Where it is; may differ from its receptacle's location."""
    affordances: frozenset[str] = frozenset()
    """A subset of AFFORDANCES."""
    is_cool: bool = False
    """Whether it is cold at the start."""
    is_container: bool = False
    """Whether it can hold other objects (only `examine` tells)."""
    inside: tuple[str, ...] = ()
    """Ids of the container objects that it is in."""


@dataclass(frozen=True, slots=True)
class Goal:
    """What has to be true in the end; kinds without the ending "Type"."""

    task_type: str
    """One of TASK_TYPES."""
    object_kind: str
    receptacle_kind: str | None = None
    """Where to place the object; None for `look_at_obj_in_light`."""
    lamp_kind: str | None = None
    """The lamp to switch on; None for all but `look_at_obj_in_light`."""

    def __post_init__(self) -> None:
        if self.task_type not in TASK_TYPES:
            raise ValueError(f"unknown task type {self.task_type!r}, expected one of {TASK_TYPES}")
        look = self.task_type == "look_at_obj_in_light"
        if (self.lamp_kind is None) == look or (self.receptacle_kind is None) != look:
            raise ValueError(
                f"a goal of type {self.task_type!r} needs "
                f"{'a lamp kind and no receptacle kind' if look else 'a receptacle kind only'}, "
                f"got receptacle {self.receptacle_kind!r} and lamp {self.lamp_kind!r}"
            )


@dataclass(frozen=True, slots=True)
class Game:
    """One start state of the text world with its goal."""

    task: str
    """The sentence after "Your task is to: ", with its full stop."""
    goal: Goal
    receptacles: tuple[Receptacle, ...]
    objects: tuple[GameObject, ...]
    start_location: str
    """Where the agent begins: no receptacle is there and no command leads back."""
    can_contain: frozenset[tuple[str, str]]
    """Pairs (receptacle kind, object kind): what may be put where."""
    walkthrough: tuple[str, ...] = ()
    """Commands that win, as the game file gives them; no part of the game's identity."""


def display_name(id: str) -> str:
    """The spoken name of a PDDL name without its number: `Sink_bar_x_bar_SinkBasin` -> sinkbasin.

    ALFWorld's rule: what stands before the first `_bar_`, then "basin" if the rest has that word.
    Raises ValueError for a name without `_bar_`.
    """
    head, found, rest = id.lower().partition("_bar_")
    if not found:
        raise ValueError(f"entity {id!r} has no '_bar_' after its name, e.g. 'Mug_bar_1'")
    return head + "basin" if "basin" in rest else head


def game_id(game: Game) -> str:
    """16 hex digits of the SHA-256 of a game's content: facts, goal and task sentence.

    The order of receptacles and objects, the walkthrough and the file's path play no part.
    """
    receptacles = sorted([r.id, r.kind, r.location, r.openable] for r in game.receptacles)
    objects = sorted(
        [
            *(o.id, o.kind, sorted(o.receptacles), o.location or "", sorted(o.affordances)),
            *(o.is_cool, o.is_container, sorted(o.inside)),
        ]
        for o in game.objects
    )
    goal = game.goal
    content = [
        game.task,
        [goal.task_type, goal.object_kind, goal.receptacle_kind, goal.lamp_kind],
        receptacles,
        objects,
        game.start_location,
        sorted(game.can_contain),
    ]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]
