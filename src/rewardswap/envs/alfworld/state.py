"""What changes in a game: the facts of ALFWorld's PDDL domain and how each action changes them."""

from collections.abc import Iterable

from rewardswap.envs.alfworld.layout import CLEAN, COOL, HOT, ON, SLICED, Layout

NOTHING = -1
"""`held` of an empty hand."""


class WorldState:
    """The facts that are true now.

    The methods that change it take indices of a `Layout` and trust the caller that the action is
    admissible. Facts are kept exactly as the PDDL domain states them, surprises included: an object
    can be in two receptacles, and its location can differ from its receptacle's.
    """

    __slots__ = (
        "contents",
        "held",
        "holders",
        "layout",
        "left",
        "location",
        "locations",
        "marks",
        "opened",
        "touched",
    )

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.location = layout.start
        self.held = NOTHING
        self.opened: set[int] = set()
        self.contents = list(layout.first_contents)
        """Per receptacle the objects in it, sorted."""
        self.holders = list(layout.first_holders)
        """Per object the receptacles that it is in."""
        self.locations = list(layout.first_locations)
        """Per object the locations that it is at."""
        self.marks = list(layout.first_conditions)
        """Per object the bits of its condition."""
        self.left: set[tuple[int, int]] = set()
        """Pairs (object, receptacle): taken out and not put back."""
        self.touched: set[int] = set()
        """Objects that an action has changed."""

    def accessible(self, receptacle: int) -> bool:
        """Whether one can reach into it: open, or nothing to open."""
        return receptacle in self.opened or not self.layout.openable[receptacle]

    def here(self) -> tuple[int, ...]:
        """The receptacles at hand."""
        return self.layout.receptacles_at[self.location]

    def go(self, receptacle: int) -> None:
        """Walk to a receptacle."""
        self.location = self.layout.location_of[receptacle]

    def take(self, thing: int, receptacle: int) -> None:
        """Pick an object up."""
        inside = self.contents[receptacle]
        self.contents[receptacle] = tuple(other for other in inside if other != thing)
        self.holders[thing] = self.holders[thing] - {receptacle}
        self.locations[thing] = self.locations[thing] - {self.location}
        self.left.add((thing, receptacle))
        self.held = thing
        self.touched.add(thing)

    def put(self, thing: int, receptacle: int) -> None:
        """Put the held object down."""
        self.contents[receptacle] = tuple(sorted({*self.contents[receptacle], thing}))
        self.holders[thing] = self.holders[thing] | {receptacle}
        self.locations[thing] = self.locations[thing] | {self.location}
        self.left.discard((thing, receptacle))
        self.held = NOTHING

    def process(self, verb: str, thing: int) -> None:
        """Clean, heat or cool an object; heat and cold undo each other."""
        marks = self.marks[thing]
        if verb == "clean":
            marks |= CLEAN
        elif verb == "heat":
            marks = (marks | HOT) & ~COOL
        else:
            marks = (marks | COOL) & ~HOT
        self.marks[thing] = marks
        self.touched.add(thing)

    def slice(self, thing: int) -> None:
        """Slice an object; it stays one object."""
        self.marks[thing] |= SLICED
        self.touched.add(thing)

    def toggle(self, thing: int) -> None:
        """Use a lamp; ALFWorld's `isToggled` stays true ever after."""
        self.marks[thing] |= ON
        self.touched.add(thing)

    def won(self) -> bool:
        """Whether the goal holds: one of the six forms of ALFWorld's `:goal`."""
        layout = self.layout
        goals = layout.goal_objects
        if layout.goal_lamps:
            return self.held in goals and any(
                self.marks[thing] & ON and thing in layout.goal_lamps
                for receptacle in self.here()
                for thing in self.contents[receptacle]
            )
        bit, marks, count = layout.goal_bit, self.marks, layout.goal_count
        for receptacle in layout.goal_receptacles:
            placed = sum(
                thing in goals and marks[thing] & bit == bit for thing in self.contents[receptacle]
            )
            if placed >= count:
                return True
        return False

    def key(self) -> str:
        """Equal strings exactly when no future answer, admissible list or `won` can differ.

        Written as a difference from the start, so it is short. Left out is what no text can tell:
        whether a lamp burns just now (`isOn`), what was looked at (`checked`), the heat of a
        container that is no goal object. One exception: with an object in hand that fits nowhere,
        equal states may have different keys.
        """
        parts = [f"{self.location},{self.held}"]
        if self.opened:
            parts.append("open " + ",".join(map(str, sorted(self.opened))))
        for thing in sorted(self.touched):
            now, then = self._told(thing), self._told_at_start(thing)
            if now != then:
                parts.append(f"{thing} {now}")
        return ";".join(parts)

    def _told(self, thing: int) -> str:
        """What texts can tell, now or later, of an object."""
        left = sorted(r for o, r in self.left if o == thing and self._matters(thing, r))
        places = self.locations[thing]
        beside = places & {self.layout.location_of[r] for r in left}
        seen = self.layout.cutting_places(thing, places) | beside
        return _words(
            self.holders[thing], self.marks[thing] & self.layout.told_bits[thing], seen, left
        )

    def _told_at_start(self, thing: int) -> str:
        layout = self.layout
        seen = layout.cutting_places(thing, layout.first_locations[thing])
        marks = layout.first_conditions[thing] & layout.told_bits[thing]
        return _words(layout.first_holders[thing], marks, seen, [])

    def _matters(self, thing: int, receptacle: int) -> bool:
        """Whether `look` can tell, now or later, that an object was taken out of a receptacle.

        It lists the objects at the agent's location that are not in a receptacle there which they
        were in before; so the object must be there, or be able to come back into another one.
        """
        layout = self.layout
        place = layout.location_of[receptacle]
        return place in self.locations[thing] or any(
            other != receptacle and layout.fits[thing][other]
            for other in layout.receptacles_at[place]
        )


def _words(holders: Iterable[int], marks: int, places: Iterable[int], left: Iterable[int]) -> str:
    return "/".join([str(sorted(holders)), str(marks), str(sorted(places)), str(sorted(left))])
