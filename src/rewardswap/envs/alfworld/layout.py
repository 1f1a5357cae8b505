"""What never changes in a game: names, places, and what each thing allows, as indices."""

from collections import Counter
from collections.abc import Iterable

from rewardswap.envs.alfworld.game import Game, display_name

CLEAN, HOT, COOL, SLICED, ON = 1, 2, 4, 8, 16
"""Bits of an object's condition."""

PROCESSES = {
    "clean": ("cleanable", frozenset({"SinkBasin", "Sink"})),
    "heat": ("heatable", frozenset({"Microwave"})),
    "cool": ("coolable", frozenset({"Fridge"})),
}
"""Verb -> the affordance that it needs, the receptacle kinds that do it, as in ALFWorld's PDDL."""

KNIVES = frozenset({"Knife", "ButterKnife"})
"""Object kinds that slice."""

GOAL_VERBS = {
    "pick_clean_then_place_in_recep": "clean",
    "pick_heat_then_place_in_recep": "heat",
    "pick_cool_then_place_in_recep": "cool",
}
GOAL_MARKS = {"clean": ("cleanable", CLEAN), "heat": ("heatable", HOT), "cool": ("coolable", COOL)}


def numbered_names(ids: Iterable[str]) -> dict[str, str]:
    """Spoken names with numbers: within one name, the first id in sorted order has the highest.

    This is how ALFWorld 0.4 names the entities of a game. Ids are compared in lower case; raises
    ValueError if two are the same.
    """
    ordered = sorted(ids, key=str.lower)
    twins = [id for id, count in Counter(map(str.lower, ordered)).items() if count > 1]
    if twins:
        raise ValueError(f"two entities have the id {twins[0]!r}; ids must differ")
    left = Counter(map(display_name, ordered))
    names = {}
    for id in ordered:
        name = display_name(id)
        names[id] = f"{name} {left[name]}"
        left[name] -= 1
    return names


class Layout:
    """The fixed part of a game; engines of the same game may share one.

    Receptacles, objects and locations are indices in the order of their sorted ids. Raises
    ValueError if an object is in an unknown receptacle or container.
    """

    def __init__(self, game: Game) -> None:
        self.game = game
        self.receptacles = tuple(sorted(game.receptacles, key=lambda r: r.id.lower()))
        self.objects = tuple(sorted(game.objects, key=lambda o: o.id.lower()))
        ids = [r.id for r in self.receptacles] + [o.id for o in self.objects]
        names = numbered_names(ids)
        self.receptacle_names = tuple(names[r.id] for r in self.receptacles)
        self.object_names = tuple(names[o.id] for o in self.objects)
        self.receptacle_index = {name: i for i, name in enumerate(self.receptacle_names)}
        self.object_index = {name: i for i, name in enumerate(self.object_names)}
        self._place()
        self._allow()
        self._aim()

    def _place(self) -> None:
        receptacles = {r.id: i for i, r in enumerate(self.receptacles)}
        objects = {o.id: i for i, o in enumerate(self.objects)}
        places = {self.game.start_location, *(r.location for r in self.receptacles)}
        places.update(o.location for o in self.objects if o.location is not None)
        location = {place: i for i, place in enumerate(sorted(places))}
        self.start = location[self.game.start_location]
        self.location_of = tuple(location[r.location] for r in self.receptacles)
        at: list[list[int]] = [[] for _ in location]
        for i, place in enumerate(self.location_of):
            at[place].append(i)
        self.receptacles_at = tuple(map(tuple, at))
        self.first_locations = tuple(
            frozenset(() if o.location is None else (location[o.location],)) for o in self.objects
        )
        contents: list[list[int]] = [[] for _ in self.receptacles]
        self.inside: list[list[int]] = [[] for _ in self.objects]
        for i, thing in enumerate(self.objects):
            for names, index, lists in (
                (thing.receptacles, receptacles, contents),
                (thing.inside, objects, self.inside),
            ):
                unknown = [name for name in names if name not in index]
                if unknown:
                    raise ValueError(f"object {thing.id!r} is in an unknown thing {unknown[0]!r}")
                for name in names:
                    lists[index[name]].append(i)
        self.first_contents = tuple(map(tuple, contents))
        self.first_holders = tuple(
            frozenset(receptacles[name] for name in o.receptacles) for o in self.objects
        )

    def _allow(self) -> None:
        self.openable = tuple(r.openable for r in self.receptacles)
        self.pickupable = tuple("pickupable" in o.affordances for o in self.objects)
        self.toggleable = tuple("toggleable" in o.affordances for o in self.objects)
        self.sliceable = tuple("sliceable" in o.affordances for o in self.objects)
        self.knife = tuple(o.kind in KNIVES for o in self.objects)
        self.can_slice = any(
            k and p for k, p in zip(self.knife, self.pickupable, strict=True)
        ) and any(self.sliceable)
        self.processes = tuple(
            tuple(verb for verb, (need, _) in PROCESSES.items() if need in o.affordances)
            for o in self.objects
        )
        self.processors = {
            verb: tuple(r.kind in kinds for r in self.receptacles)
            for verb, (_, kinds) in PROCESSES.items()
        }
        kinds = {o.kind for o in self.objects}
        fits = {
            kind: tuple((r.kind, kind) in self.game.can_contain for r in self.receptacles)
            for kind in sorted(kinds)
        }
        self.fits = tuple(fits[o.kind] for o in self.objects)
        self.go_commands = self._go_commands()

    def _go_commands(self) -> tuple[tuple[str, ...], ...]:
        commands = sorted(
            (f"go to {name}", place)
            for name, place in zip(self.receptacle_names, self.location_of, strict=True)
        )
        reachable = {self.start, *self.location_of}
        return tuple(
            tuple(command for command, place in commands if place != here)
            if here in reachable
            else ()
            for here in range(len(self.receptacles_at))
        )

    def _aim(self) -> None:
        goal = self.game.goal
        self.goal_verb = GOAL_VERBS.get(goal.task_type, "")
        affordance, self.goal_bit = GOAL_MARKS.get(self.goal_verb, ("", 0))
        self.goal_objects = frozenset(
            i
            for i, o in enumerate(self.objects)
            if o.kind == goal.object_kind and (not affordance or affordance in o.affordances)
        )
        self.goal_receptacles = tuple(
            i for i, r in enumerate(self.receptacles) if r.kind == goal.receptacle_kind
        )
        self.goal_lamps = frozenset(
            i
            for i, o in enumerate(self.objects)
            if o.kind == goal.lamp_kind and "toggleable" in o.affordances
        )
        self.goal_count = 2 if goal.task_type == "pick_two_obj_and_place" else 1
        self.first_conditions = tuple(COOL if o.is_cool else 0 for o in self.objects)
        self.told_bits = tuple(self._told(i) for i in range(len(self.objects)))

    def cutting_places(self, thing: int, places: frozenset[int]) -> frozenset[int]:
        """Those of an object's places where one could stand with a knife and slice it."""
        if not (self.can_slice and self.sliceable[thing]):
            return frozenset()
        return frozenset(place for place in places if self.receptacles_at[place])

    def _told(self, i: int) -> int:
        """The bits of object i that some text or the goal can tell."""
        goal = (self.goal_bit if i in self.goal_objects else 0) | (
            ON if i in self.goal_lamps else 0
        )
        thing = self.objects[i]
        examined = "pickupable" in thing.affordances and not thing.is_container
        return goal | (CLEAN | HOT | COOL | SLICED | ON if examined else 0)
