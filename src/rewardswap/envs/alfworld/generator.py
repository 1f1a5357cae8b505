"""Fresh games of the ALFWorld text world: furnished rooms that no official game contains.

Facts (which kind goes where, what can be heated) are those of the official games; the rooms are
ours and smaller, so that an episode fits into some 130 tokens.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from random import Random
from typing import Literal

from rewardswap.envs.alfworld.affordances import (
    ACCEPTS,
    CAN_CONTAIN,
    CONTAINERS,
    FURNITURE,
    KINDS_WITH,
    LAMP_STANDS,
    MOVABLES,
    OPENABLE,
)
from rewardswap.envs.alfworld.game import (
    AFFORDANCES,
    PROCESSED_BY,
    Game,
    GameObject,
    Goal,
    Receptacle,
    game_id,
)
from rewardswap.envs.alfworld.goals import goals_of, possible_types, rooms_with, sentence
from rewardswap.envs.alfworld.oracle import solve
from rewardswap.envs.alfworld.world import TRAIN, GameWorld
from rewardswap.task import Task

HELD_OUT = "held_out"

REPEATABLE = ("Cabinet", "Drawer", "Shelf", "CounterTop", "SideTable", "StoveBurner")
"""Receptacle kinds of which a room may have several."""


@dataclass(frozen=True, slots=True)
class RoomSize:
    """How much stands and lies in a generated room; the bounds are inclusive."""

    receptacles: tuple[int, int] = (4, 6)
    """Fewest and most receptacles."""
    objects: tuple[int, int] = (5, 8)
    """Fewest and most objects, a lamp included."""
    most_of_a_kind: int = 3
    """Most receptacles of one kind."""
    rooms: tuple[str, ...] = tuple(FURNITURE)
    """Room kinds to draw from."""

    def __post_init__(self) -> None:
        for name, (low, high), floor in (
            ("receptacles", self.receptacles, 3),
            ("objects", self.objects, 3),
        ):
            if not floor <= low <= high:
                raise ValueError(
                    f"{name} {(low, high)} of a room must be two rising numbers from {floor} on"
                )
        if self.most_of_a_kind < 1:
            raise ValueError(f"most_of_a_kind must be at least 1, got {self.most_of_a_kind}")
        unknown = sorted(set(self.rooms) - set(FURNITURE))
        if unknown or not self.rooms:
            raise ValueError(f"unknown rooms {unknown}, choose from {list(FURNITURE)}")


def generate_game(seed: int, size: RoomSize | None = None, task_type: str | None = None) -> Game:
    """A game that depends on nothing but the arguments, proven solvable by the oracle.

    The goal does not hold at the start: no object of the wanted kind is in a receptacle of the
    goal's kind. Without `task_type` the six are equally likely. Raises ValueError for a task type
    that none of the rooms has.
    """
    size = size or RoomSize()
    random = Random(seed)
    chosen = task_type or random.choice(possible_types(size.rooms))
    room = random.choice(rooms_with(chosen, size.rooms))
    goal = random.choice(goals_of(room, chosen))
    kinds = _furnish(random, room, goal, size)
    receptacles = _receptacles(random, kinds)
    game = Game(
        task=sentence(random, goal),
        goal=goal,
        receptacles=receptacles,
        objects=_objects(random, room, goal, receptacles, size),
        start_location="loc_bar_0",
        can_contain=CAN_CONTAIN,
    )
    return replace(game, walkthrough=tuple(solve(game)))


def _furnish(random: Random, room: str, goal: Goal, size: RoomSize) -> list[str]:
    """Receptacle kinds: what the goal asks for, a place for the target, then by share."""
    kinds = [goal.receptacle_kind] if goal.receptacle_kind else []
    if goal.lamp_kind:
        kinds.append(random.choice([k for k in LAMP_STANDS if k in FURNITURE[room]]))
    if goal.task_type in PROCESSED_BY:
        kinds.append(PROCESSED_BY[goal.task_type][1])
    if not any(_may_start(goal, kind) for kind in kinds):
        kinds.append(random.choice([k for k in FURNITURE[room] if _may_start(goal, k)]))
    count = max(len(kinds), random.randint(*size.receptacles))
    while len(kinds) < count:
        allowed = {
            kind: share
            for kind, share in FURNITURE[room].items()
            if kinds.count(kind) < (size.most_of_a_kind if kind in REPEATABLE else 1)
        }
        if not allowed:
            raise ValueError(
                f"a {room} has no room for {count} receptacles with at most "
                f"{size.most_of_a_kind} of a kind; raise most_of_a_kind"
            )
        kinds += random.choices(list(allowed), list(allowed.values()))
    return kinds


def _may_start(goal: Goal, receptacle_kind: str) -> bool:
    return receptacle_kind != goal.receptacle_kind and goal.object_kind in ACCEPTS[receptacle_kind]


def _receptacles(random: Random, kinds: Sequence[str]) -> tuple[Receptacle, ...]:
    """In random order, so that neither a name nor a place tells the content; one location each."""
    random_order = random.sample(list(kinds), len(kinds))
    return tuple(
        Receptacle(_receptacle_id(kind, n), kind, f"loc_bar_{n + 1}", kind in OPENABLE)
        for n, kind in enumerate(random_order)
    )


def _receptacle_id(kind: str, number: int) -> str:
    if kind.endswith("Basin"):
        return f"{kind.removesuffix('Basin')}_bar_{number}_bar_{kind}"
    return f"{kind}_bar_{number}"


def _objects(
    random: Random, room: str, goal: Goal, receptacles: Sequence[Receptacle], size: RoomSize
) -> tuple[GameObject, ...]:
    wanted = [goal.object_kind] * (2 if goal.task_type == "pick_two_obj_and_place" else 1)
    if goal.lamp_kind:
        wanted.append(goal.lamp_kind)
    homes = {kind: [r for r in receptacles if kind in ACCEPTS[r.kind]] for kind in MOVABLES[room]}
    homes["DeskLamp"] = [r for r in receptacles if r.kind in LAMP_STANDS]
    homes[goal.object_kind] = [r for r in receptacles if _may_start(goal, r.kind)]
    others = [k for k in MOVABLES[room] if homes[k] and k != goal.object_kind]
    count = random.randint(*size.objects)
    while len(wanted) < count and others:
        wanted.append(random.choice(others))
    return tuple(_object(kind, n, random.choice(homes[kind])) for n, kind in enumerate(wanted))


@cache
def _affordances(kind: str) -> frozenset[str]:
    special = {name for name in AFFORDANCES if kind in KINDS_WITH.get(name, ())}
    return frozenset(special if "toggleable" in special else special | {"pickupable"})


def _object(kind: str, number: int, home: Receptacle) -> GameObject:
    return GameObject(
        id=f"{kind}_bar_{number}",
        kind=kind,
        receptacles=(home.id,),
        location=home.location,
        affordances=_affordances(kind),
        is_container=kind in CONTAINERS,
    )


def _stream_seed(seed: int, split: str, number: int) -> int:
    digest = hashlib.sha256(f"{seed}/{split}/{number}".encode()).digest()
    return int.from_bytes(digest[:8], "big")


class GeneratedWorld(GameWorld):
    """A world of freshly generated games with the splits `train` and `held_out`.

    The games of `train` are made when another split than `held_out` is first listed.
    """

    def __init__(
        self,
        seed: int,
        train: int,
        held_out: int,
        *,
        size: RoomSize | None = None,
        turn_limit: int = 20,
        style: Literal["full", "short"] = "short",
        task_type: str | None = None,
    ) -> None:
        """`train` and `held_out` count games; no game is in both splits or twice in one.

        Without `task_type` the six are equally likely.
        """
        seen: set[str] = set()
        held = fresh_games(_stream_seed(seed, HELD_OUT, 0), held_out, size, seen, task_type)
        super().__init__({HELD_OUT: held}, style=style, turn_limit=turn_limit)
        first = _stream_seed(seed, TRAIN, 0)
        self._train = partial(fresh_games, first, train, size, seen, task_type)

    def tasks(self, split: str) -> list[Task]:
        """Every game of a split once; raises ValueError naming the splits."""
        if split != HELD_OUT and TRAIN not in self._games:
            self._add(TRAIN, self._train())
        return super().tasks(split)


def fresh_games(
    seed: int,
    count: int,
    size: RoomSize | None = None,
    seen: set[str] | None = None,
    task_type: str | None = None,
) -> list[Game]:
    """`count` different games, none of which has an id in `seen`; their ids are added to it.

    Raises ValueError if so small rooms have too few different games.
    """
    seen = set() if seen is None else seen
    games: list[Game] = []
    number = 0
    while len(games) < count:
        game = generate_game(_stream_seed(seed, "game", number), size, task_type)
        number += 1
        if game_id(game) not in seen:
            seen.add(game_id(game))
            games.append(game)
        if number > 100 + 20 * count:
            raise ValueError(
                f"found only {len(games)} of {count} different games; let rooms be larger"
            )
    return games
