"""The parts of reading that need no official file."""

from pathlib import Path

import pytest

from rewardswap.envs.alfworld.game import TASK_TYPES
from rewardswap.envs.alfworld.pddl import parse_game, read_game
from rewardswap.envs.alfworld.pddl_goals import GOALS, parse_goal


@pytest.mark.parametrize("task_type", TASK_TYPES)
def test_each_form_of_goal_reads_back(task_type: str) -> None:
    text = GOALS[task_type]
    for placeholder, kind in (("OBJECT", "Mug"), ("RECEPTACLE", "Shelf"), ("LAMP", "DeskLamp")):
        text = text.replace(placeholder, f"{kind}Type")
    goal = parse_goal(text.replace("(", " ( ") + "\n)")
    assert (goal.task_type, goal.object_kind) == (task_type, "Mug")
    assert goal.lamp_kind == ("DeskLamp" if task_type == "look_at_obj_in_light" else None)
    with pytest.raises(ValueError, match="unknown form of goal"):
        parse_goal(text)  # the problem's own closing bracket is missing


def test_a_goal_of_two_kinds_where_one_is_meant_is_refused() -> None:
    text = GOALS["pick_two_obj_and_place"].replace("RECEPTACLE", "ShelfType") + ")"
    with pytest.raises(ValueError, match="unknown form of goal"):
        parse_goal(text.replace("OBJECT", "MugType", 1).replace("OBJECT", "CupType"))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"cannot read .*gone\.tw-pddl: No such file.*download"):
        read_game(tmp_path / "gone.tw-pddl")


def test_an_unsolvable_game_is_named() -> None:
    content = dict.fromkeys(("pddl_domain", "grammar", "pddl_problem", "walkthrough"), "")
    with pytest.raises(ValueError, match="marked unsolvable"):
        parse_game({**content, "solvable": False})
