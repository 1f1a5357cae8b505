"""Writing a game as an official file, for the stock engine or for a folder of games."""

import json
from collections.abc import Iterable
from pathlib import Path

from rewardswap.envs.alfworld.game import Game
from rewardswap.envs.alfworld.pddl import GOALS, read_game


def write_game(game: Game, path: Path, like: Path) -> None:
    """Write `game` as a `game.tw-pddl`, with the domain and grammar texts of the file `like`.

    Those texts are ALFWorld's and do not ship with this package; `like` is any official game file.
    Raises ValueError if `like` is none, or if the task sentence holds a quote.
    """
    if '"' in game.task:
        raise ValueError(f"the task {game.task!r} cannot be written; it must not hold a quote")
    known = read_game(like)
    official = json.loads(like.read_bytes())
    content = {
        "pddl_domain": official["pddl_domain"],
        "grammar": official["grammar"].replace(
            f"Your task is to: {known.task}", f"Your task is to: {game.task}"
        ),
        "pddl_problem": problem_text(game),
        "solvable": True,
        "walkthrough": list(game.walkthrough),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def problem_text(game: Game) -> str:
    """The PDDL problem: objects, start state, goal."""
    lines = ["(define (problem generated)", "(:domain alfred)", "(:objects", "agent1 - agent"]
    lines += [f"{kind}Type - otype" for kind in _object_kinds(game)]
    lines += [f"{kind}Type - rtype" for kind in _receptacle_kinds(game)]
    lines += [f"{thing.id} - object" for thing in game.objects]
    lines += [f"{place.id} - receptacle" for place in game.receptacles]
    lines += [f"{location} - location" for location in _locations(game)]
    lines += [")", "(:init", *(f"({fact})" for fact in _facts(game)), ")", _goal(game), ")"]
    return "\n".join(lines)


def _object_kinds(game: Game) -> list[str]:
    return sorted({t.kind for t in game.objects} | {kind for _, kind in game.can_contain})


def _receptacle_kinds(game: Game) -> list[str]:
    return sorted({r.kind for r in game.receptacles} | {kind for kind, _ in game.can_contain})


def _locations(game: Game) -> list[str]:
    places = {r.location for r in game.receptacles} | {o.location for o in game.objects}
    return sorted({game.start_location, *(place for place in places if place)})


def _facts(game: Game) -> Iterable[str]:
    yield f"atLocation agent1 {game.start_location}"
    for place in game.receptacles:
        yield f"receptacleType {place.id} {place.kind}Type"
        yield f"receptacleAtLocation {place.id} {place.location}"
        if place.openable:
            yield f"openable {place.id}"
    for thing in game.objects:
        yield f"objectType {thing.id} {thing.kind}Type"
        if thing.location:
            yield f"objectAtLocation {thing.id} {thing.location}"
        yield from (f"inReceptacle {thing.id} {holder}" for holder in thing.receptacles)
        yield from (f"inReceptacleObject {thing.id} {outer}" for outer in thing.inside)
        yield from (f"{name} {thing.id}" for name in sorted(thing.affordances))
        if thing.is_cool:
            yield f"isCool {thing.id}"
        if thing.is_container:
            yield f"isReceptacleObject {thing.id}"
    for place_kind, kind in sorted(game.can_contain):
        yield f"canContain {place_kind}Type {kind}Type"


def _goal(game: Game) -> str:
    goal = game.goal
    text = GOALS[goal.task_type].replace("OBJECT", f"{goal.object_kind}Type")
    text = text.replace("RECEPTACLE", f"{goal.receptacle_kind}Type")
    return text.replace("LAMP", f"{goal.lamp_kind}Type")
