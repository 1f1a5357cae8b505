"""A plan that wins, worked out from the facts that the agent cannot see (ours, for experts)."""

from collections.abc import Iterable, Iterator
from itertools import permutations, product

from rewardswap.envs.alfworld.game import Game, game_id
from rewardswap.envs.alfworld.layout import Layout
from rewardswap.envs.alfworld.state import WorldState


def solve(game: Game, layout: Layout | None = None) -> list[str]:
    """A shortest list of commands that wins a game without a wasted look.

    Shortest among the plans that fetch, process and place one object after the other; ties go to
    the first in sorted order. Empty for a game that is won at the start. Raises ValueError for a
    game that no plan wins, saying what it lacks.
    """
    layout = layout or Layout(game)
    if WorldState(layout).won():
        return []
    plans = (_lamp_plans if layout.goal_lamps else _place_plans)(layout)
    won = [plan.commands for plan in plans if plan.state.won()]
    if not won:
        raise ValueError(f"game {game_id(game)} ({game.task}) cannot be won: {_lack(layout)}")
    return min(won, key=len)


class _Plan:
    """Commands and the state that they lead to."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.state = WorldState(layout)
        self.commands: list[str] = []

    def go(self, receptacle: int) -> None:
        if self.layout.location_of[receptacle] != self.state.location:
            self.commands.append(f"go to {self.layout.receptacle_names[receptacle]}")
            self.state.go(receptacle)

    def reach_into(self, receptacle: int) -> None:
        self.go(receptacle)
        if not self.state.accessible(receptacle):
            self.commands.append(f"open {self.layout.receptacle_names[receptacle]}")
            self.state.opened.add(receptacle)

    def take(self, thing: int, receptacle: int) -> None:
        self.reach_into(receptacle)
        name = self.layout.object_names[thing]
        self.commands.append(f"take {name} from {self.layout.receptacle_names[receptacle]}")
        self.state.take(thing, receptacle)

    def process(self, thing: int, verb: str, receptacle: int) -> None:
        self.go(receptacle)
        name = self.layout.object_names[thing]
        self.commands.append(f"{verb} {name} with {self.layout.receptacle_names[receptacle]}")
        self.state.process(verb, thing)

    def put(self, thing: int, receptacle: int) -> None:
        self.reach_into(receptacle)
        name = self.layout.object_names[thing]
        self.commands.append(f"move {name} to {self.layout.receptacle_names[receptacle]}")
        self.state.put(thing, receptacle)

    def use(self, lamp: int, receptacle: int) -> None:
        self.go(receptacle)
        self.commands.append(f"use {self.layout.object_names[lamp]}")
        self.state.toggle(lamp)


def _candidates(layout: Layout) -> list[int]:
    """The goal objects that can be picked up."""
    return [
        thing
        for thing in sorted(layout.goal_objects)
        if layout.pickupable[thing] and layout.first_holders[thing]
    ]


def _lamp_plans(layout: Layout) -> Iterator[_Plan]:
    for thing in _candidates(layout):
        for lamp in sorted(layout.goal_lamps):
            for source, stand in product(*_holders(layout, (thing, lamp))):
                plan = _Plan(layout)
                plan.take(thing, source)
                plan.use(lamp, stand)
                yield plan


def _place_plans(layout: Layout) -> Iterator[_Plan]:
    for target in layout.goal_receptacles:
        free = [
            thing
            for thing in _candidates(layout)
            if layout.fits[thing][target]
            and (layout.goal_bit or target not in layout.first_holders[thing])
        ]
        placed = len(layout.goal_objects.intersection(layout.first_contents[target]))
        missing = 2 - placed if layout.goal_count == 2 else 1
        for things in permutations(free, missing):
            for sources in product(*_holders(layout, things)):
                moves = tuple(zip(things, sources, strict=True))
                for station in _stations(layout):
                    yield _place_plan(layout, moves, station, target)


def _place_plan(
    layout: Layout, moves: tuple[tuple[int, int], ...], station: int | None, target: int
) -> _Plan:
    plan = _Plan(layout)
    for thing, source in moves:
        plan.take(thing, source)
        if station is not None and not plan.state.marks[thing] & layout.goal_bit:
            plan.process(thing, layout.goal_verb, station)
        if not plan.state.won():
            plan.put(thing, target)
    return plan


def _holders(layout: Layout, things: Iterable[int]) -> list[list[int]]:
    """Per object the receptacles that it is in; an official game may state several."""
    return [sorted(layout.first_holders[thing]) for thing in things]


def _stations(layout: Layout) -> list[int] | list[None]:
    """The receptacles that do what the goal asks for; [None] if it asks for nothing."""
    if not layout.goal_verb:
        return [None]
    return [i for i, does in enumerate(layout.processors[layout.goal_verb]) if does]


def _lack(layout: Layout) -> str:
    goal = layout.game.goal
    if len(_candidates(layout)) < layout.goal_count:
        return f"it needs {layout.goal_count} {goal.object_kind} to pick up"
    if goal.lamp_kind is not None:
        return f"no toggleable {goal.lamp_kind} is in a receptacle"
    if not layout.goal_receptacles:
        return f"it has no {goal.receptacle_kind}"
    if not _stations(layout):
        return f"it has no receptacle to {layout.goal_verb} something with"
    return f"no {goal.receptacle_kind} may hold {layout.goal_count} {goal.object_kind}"
