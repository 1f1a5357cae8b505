"""Reading the official game files of ALFWorld, `game.tw-pddl` (JSON around PDDL texts)."""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from sys import intern

from rewardswap.envs.alfworld.game import (
    AFFORDANCES,
    Game,
    GameObject,
    Goal,
    Receptacle,
)
from rewardswap.envs.alfworld.pddl_goals import GOALS as GOALS
from rewardswap.envs.alfworld.pddl_goals import parse_goal

KEYS = ("pddl_domain", "grammar", "pddl_problem", "solvable", "walkthrough")

DOMAIN = "abd977daed3ce87d3ebb4c75282de50685dfb9b8d8e997dd8487f18b5a127136"
"""SHA-256 of the domain of the official game files, without comments, capitals and spaces."""

GRAMMAR = "8ccb165808cdb9ad7a3cbf7b47d41be8f56e5c55af947de8e574d72cfd6bd90b"
"""SHA-256 of the grammar of the official game files, without its task sentence and spaces."""

WAY_OUT = "fetch the games of ALFWorld 0.4 or later with `alfworld-download`"

PREDICATES = {
    "atLocation": 2,
    "receptacleAtLocation": 2,
    "receptacleType": 2,
    "openable": 1,
    "objectAtLocation": 2,
    "objectType": 2,
    "inReceptacle": 2,
    "inReceptacleObject": 2,
    "isReceptacleObject": 1,
    "isCool": 1,
    "canContain": 2,
    **dict.fromkeys(AFFORDANCES, 1),
}
"""The predicates of a start state that the engine knows, with their number of arguments."""

_TASK = re.compile(r'"rhs": "Your task is to: ([^"]*)"')
_FACT = re.compile(r"\(\s*([^()]+?)\s*\)")


class UnsolvableGameError(ValueError):
    """A game file that says of itself that no plan wins it."""


Facts = Mapping[str, list[list[str]]]


def read_game(path: Path) -> Game:
    """The game in a file `game.tw-pddl`.

    Raises ValueError naming the path and what to do: no such file, not JSON, a key missing, another
    domain or grammar, an unknown form of goal or fact, or a game marked unsolvable.
    """
    try:
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise ValueError(f"cannot read game file {path}: {error.strerror}; {WAY_OUT}") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"game file {path} is not JSON ({error}); {WAY_OUT}") from error
    try:
        return parse_game(data)
    except ValueError as error:
        kind = UnsolvableGameError if isinstance(error, UnsolvableGameError) else ValueError
        raise kind(f"game file {path}: {error}") from error


def parse_game(data: object) -> Game:
    """The game in the decoded content of a game file; raises ValueError as `read_game` does."""
    if not isinstance(data, dict):
        raise ValueError(f"expected a JSON object, got {type(data).__name__}; {WAY_OUT}")
    missing = [key for key in KEYS if key not in data]
    if missing:
        raise ValueError(f"key {missing[0]!r} is missing; {WAY_OUT}")
    if data["solvable"] is not True:
        raise UnsolvableGameError("it is marked unsolvable; leave it out of the games folder")
    for key in ("pddl_domain", "grammar", "pddl_problem"):
        if not isinstance(data[key], str):
            raise ValueError(f"{key!r} is a {type(data[key]).__name__}, expected a text; {WAY_OUT}")
    walkthrough = data["walkthrough"]
    if not isinstance(walkthrough, list) or not all(isinstance(c, str) for c in walkthrough):
        raise ValueError(f"'walkthrough' is no list of commands; {WAY_OUT}")
    if _domain_digest(data["pddl_domain"]) != DOMAIN:
        raise ValueError(f"its PDDL domain is not ALFWorld's, which this engine plays; {WAY_OUT}")
    task = _TASK.search(data["grammar"])
    if task is None or _grammar_digest(_TASK.sub("", data["grammar"])) != GRAMMAR:
        raise ValueError(f"its grammar is not that of ALFWorld 0.4 ('move X to Y'); {WAY_OUT}")
    problem = re.sub(r";[^\n]*", "", data["pddl_problem"])
    start, end = problem.find("(:init"), problem.find("(:goal")
    if not 0 <= start < end:
        raise ValueError(f"its problem has no '(:init' before '(:goal'; {WAY_OUT}")
    goal = parse_goal(problem[end:])
    facts = _parse_facts(problem[start + len("(:init") : end])
    return _game(task.group(1), goal, facts, tuple(walkthrough))


@lru_cache(maxsize=8)
def _domain_digest(text: str) -> str:
    plain = "".join(re.sub(r";[^\n]*", "", text).lower().split())
    return hashlib.sha256(plain.encode()).hexdigest()


@lru_cache(maxsize=8)
def _grammar_digest(text: str) -> str:
    return hashlib.sha256("".join(text.split()).encode()).hexdigest()


def _parse_facts(text: str) -> Facts:
    facts: dict[str, list[list[str]]] = defaultdict(list)
    for fact in _FACT.findall(text):
        name, *arguments = map(intern, fact.split())
        if PREDICATES.get(name) != len(arguments):
            raise ValueError(f"unknown fact ({fact}) in its start state; {WAY_OUT}")
        facts[name].append(arguments)
    return facts


def _pairs(facts: Facts, name: str) -> dict[str, tuple[str, ...]]:
    values: dict[str, set[str]] = defaultdict(set)
    for key, value in facts.get(name, ()):
        values[key].add(value)
    return {key: tuple(sorted(values[key])) for key in sorted(values)}


def _only(facts: Facts, name: str) -> dict[str, str]:
    pairs = _pairs(facts, name)
    for key, values in pairs.items():
        if len(values) != 1:
            raise ValueError(f"{key!r} has {len(values)} facts {name!r}, expected one; {WAY_OUT}")
    return {key: values[0] for key, values in pairs.items()}


def _kinds(facts: Facts, name: str) -> dict[str, str]:
    return {key: intern(kind.removesuffix("Type")) for key, kind in _only(facts, name).items()}


@lru_cache(maxsize=1024)
def _shared_pairs(pairs: frozenset[tuple[str, str]]) -> frozenset[tuple[str, str]]:
    return pairs


def _game(task: str, goal: Goal, facts: Facts, walkthrough: tuple[str, ...]) -> Game:
    agents = list(_only(facts, "atLocation").values())
    if len(agents) != 1:
        raise ValueError(f"{len(agents)} agents have a place at the start, expected one")
    can_contain = frozenset(
        (intern(r.removesuffix("Type")), intern(o.removesuffix("Type")))
        for r, o in facts.get("canContain", ())
    )
    return Game(
        task=task,
        goal=goal,
        receptacles=_receptacles(facts),
        objects=_objects(facts),
        start_location=agents[0],
        can_contain=_shared_pairs(can_contain),
        walkthrough=tuple(map(intern, walkthrough)),
    )


def _receptacles(facts: Facts) -> tuple[Receptacle, ...]:
    kinds, places = _kinds(facts, "receptacleType"), _only(facts, "receptacleAtLocation")
    openable = {name for (name,) in facts.get("openable", ())}
    strange = sorted((kinds.keys() ^ places.keys()) | (openable - kinds.keys()))
    if strange:
        raise ValueError(f"receptacle {strange[0]!r} lacks a type or a location; {WAY_OUT}")
    return tuple(Receptacle(r, kinds[r], places[r], r in openable) for r in kinds)


def _objects(facts: Facts) -> tuple[GameObject, ...]:
    kinds, places = _kinds(facts, "objectType"), _only(facts, "objectAtLocation")
    holders, outer = _pairs(facts, "inReceptacle"), _pairs(facts, "inReceptacleObject")
    marked: dict[str, set[str]] = defaultdict(set)
    for mark in (*AFFORDANCES, "isCool", "isReceptacleObject"):
        for (name,) in facts.get(mark, ()):
            marked[name].add(mark)
    names = {*kinds, *places, *holders, *outer, *marked}
    names.update(name for containers in outer.values() for name in containers)
    return tuple(
        GameObject(
            id=name,
            kind=kinds.get(name, ""),
            receptacles=holders.get(name, ()),
            location=places.get(name),
            affordances=_affordances(frozenset(marked[name])),
            is_cool="isCool" in marked[name],
            is_container="isReceptacleObject" in marked[name],
            inside=outer.get(name, ()),
        )
        for name in sorted(names)
    )


@lru_cache(maxsize=256)
def _affordances(marks: frozenset[str]) -> frozenset[str]:
    return marks & frozenset(AFFORDANCES)
