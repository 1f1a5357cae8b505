"""The six forms of `(:goal ...)` in ALFWorld's problems, one per task type."""

import re

from rewardswap.envs.alfworld.game import TASK_TYPES, Goal

_PLACE = (
    "(:goal(and(exists(?r - receptacle)(exists(?o - object)"
    "(and({affordance} ?o)(objectType ?o OBJECT)(receptacleType ?r RECEPTACLE)"
    "({state} ?o)(inReceptacle ?o ?r))))))"
)
GOALS = {
    "pick_and_place_simple": (
        "(:goal(and(exists(?r - receptacle)(exists(?o - object)"
        "(and(inReceptacle ?o ?r)(objectType ?o OBJECT)(receptacleType ?r RECEPTACLE))))))"
    ),
    "look_at_obj_in_light": (
        "(:goal(and(exists(?ot - object ?r - receptacle ?a - agent ?l - location)"
        "(and(objectType ?ot LAMP)(toggleable ?ot)(isToggled ?ot)(receptacleAtLocation ?r ?l)"
        "(atLocation ?a ?l)(inReceptacle ?ot ?r)))"
        "(exists(?o - object ?a - agent)(and(objectType ?o OBJECT)(holds ?a ?o)))))"
    ),
    "pick_clean_then_place_in_recep": _PLACE.format(affordance="cleanable", state="isClean"),
    "pick_heat_then_place_in_recep": _PLACE.format(affordance="heatable", state="isHot"),
    "pick_cool_then_place_in_recep": _PLACE.format(affordance="coolable", state="isCool"),
    "pick_two_obj_and_place": (
        "(:goal(and(exists(?r - receptacle)(exists(?o1 - object)"
        "(and(objectType ?o1 OBJECT)(receptacleType ?r RECEPTACLE)(inReceptacle ?o1 ?r)"
        "(exists(?o2 - object)(and(not(= ?o1 ?o2))(objectType ?o2 OBJECT)"
        "(receptacleType ?r RECEPTACLE)(inReceptacle ?o2 ?r))))))))"
    ),
}
"""The goal text of every task type; OBJECT, RECEPTACLE and LAMP stand for the type names."""

_SPACES_AT_BRACKETS = re.compile(r"\s*([()])\s*")


def _goal_pattern(text: str) -> re.Pattern[str]:
    pattern = re.escape(text)
    for name in ("OBJECT", "RECEPTACLE", "LAMP"):
        group = f"(?P<{name}>\\w+)Type"
        pattern = pattern.replace(name, group, 1).replace(name + r"\)", f"(?P={name})Type\\)")
    return re.compile(pattern + r"\)")


_GOAL_PATTERNS = {name: _goal_pattern(GOALS[name]) for name in TASK_TYPES}


def parse_goal(text: str) -> Goal:
    """The goal in the rest of a PDDL problem from "(:goal" on.

    Raises ValueError for a form that is none of the six.
    """
    plain = _SPACES_AT_BRACKETS.sub(r"\1", " ".join(text.split()))
    for task_type, pattern in _GOAL_PATTERNS.items():
        found = pattern.fullmatch(plain.strip())
        if found:
            kinds = found.groupdict()
            return Goal(task_type, kinds["OBJECT"], kinds.get("RECEPTACLE"), kinds.get("LAMP"))
    raise ValueError(f"unknown form of goal {plain!r}; the engine knows {', '.join(TASK_TYPES)}")
