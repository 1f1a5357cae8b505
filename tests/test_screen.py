"""Tables of success as they are printed."""

from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from made import made_trajectory
from rewardswap.evaluation import Evaluation, Panel
from rewardswap.rollout.engine import SamplingParams
from rewardswap.screen import Screen, evaluation_table, print_remarks
from rewardswap.types import Task, Trajectory

MUGS = tuple(Task(f"mug-{n}", "garden", "B1") for n in range(3))
SHIRT = Task("shirt", "fashion", "B2")


def printed(evaluation: Evaluation) -> str:
    console = Console(width=100, file=StringIO(), record=True)
    console.print(evaluation_table("title", evaluation))
    return " ".join(console.export_text().split())


def played(task: Task, score: float) -> Trajectory:
    trajectory = made_trajectory(task.id, outcome=float(score == 1.0))
    return replace(trajectory, task=task, task_score=score)


def test_products_and_scores_have_their_places() -> None:
    trajectories = tuple(
        played(t, s) for t, s in zip((*MUGS, SHIRT), (0.0, 0.5, 1.0, 1.0), strict=True)
    )
    text = printed(
        Evaluation(Panel("s", (*MUGS, SHIRT), (), "product"), SamplingParams(), trajectories, ())
    )
    assert "score" in text
    # scores 0, .5, 1, 1; mugs 1/3 and the shirt 1/1: (1/3 + 1) / 2
    assert "all 4 50.0% 15.0% - 85.0% 0.625 2.0 0.0%" in text
    assert "per product (2) 66.7% 0.0% - 100.0%" in text
    assert "Student's t" in text


def test_without_scores_and_origins_there_is_no_word_of_them() -> None:
    tasks = (Task("a", "x"), Task("b", "x"))
    trajectories = tuple(played(task, 1.0) for task in tasks)
    text = printed(Evaluation(Panel("s", tasks), SamplingParams(), trajectories, ()))
    assert "all 2 100.0% 34.2% - 100.0% 2.0 0.0%" in text
    for word in ("score", "per ", "Student"):
        assert word not in text


def test_a_line_of_eighty_columns_holds_the_longest_type_of_alfworld() -> None:
    name = "pick_clean_then_place_in_recep"
    tasks = tuple(Task(f"{n}", name) for n in range(1000))
    trajectories = tuple(played(task, 1.0) for task in tasks)
    console = Console(width=80, file=StringIO(), record=True)
    console.print(
        evaluation_table("title", Evaluation(Panel("s", tasks), SamplingParams(), trajectories, ()))
    )
    row = f"{name}   1000   100.0%  99.6% - 100.0%    2.0     0.0%"
    assert row in [line.rstrip() for line in console.export_text().splitlines()]


@pytest.mark.parametrize("scores", [(0.0, 0.5, 1.0), (0.0, 0.0, 1.0)])
def test_the_last_lines_tell_scores_where_there_are_any(scores: tuple[float, ...]) -> None:
    panel = Panel("s", MUGS)
    before = Evaluation(panel, SamplingParams(), tuple(played(task, 0.0) for task in MUGS), ())
    trajectories = tuple(played(t, s) for t, s in zip(MUGS, scores, strict=True))
    console = Console(width=200, file=StringIO(), record=True)
    Screen(console).finish(
        before, Evaluation(panel, SamplingParams(), trajectories, ()), 7.0, Path("page")
    )
    score = ", score 0.000 -> 0.500," if 0.5 in scores else ""
    said = f"-> 33.3% [6.1%, 79.2%] (+33.3 points){score} on 3 held-out tasks in 7 s\npage\n"
    assert console.export_text().endswith(said)


@pytest.mark.parametrize("remark", ["valid: 3 goals [left out]", "[bold]products[/]"])
def test_a_remark_is_printed_once_and_as_it_is(remark: str) -> None:
    console = Console(width=100, file=StringIO(), record=True)
    print_remarks(console, [remark, remark])
    assert console.export_text() == f"{remark}\n"
