"""Panels and tallies."""

from dataclasses import replace

import pytest

from made import made_trajectory
from rewardswap.evaluation import Evaluation, Panel, Tally, assert_disjoint
from rewardswap.types import Task

TASKS = tuple(Task(name, family) for name, family in (("a", "x"), ("b", "x"), ("c", "y")))


def test_a_panel_is_known_by_its_content_and_order() -> None:
    assert Panel("s", TASKS).hash == Panel("t", TASKS).hash
    assert Panel("s", TASKS).hash != Panel("s", TASKS[::-1]).hash
    assert Panel("s", TASKS).hash != Panel("s", TASKS[:2]).hash


def test_bad_panels() -> None:
    with pytest.raises(ValueError, match="'s' is empty"):
        Panel("s", ())
    with pytest.raises(ValueError, match="holds a task twice"):
        Panel("s", (*TASKS, TASKS[0]))
    with pytest.raises(ValueError, match=r"2 of 3 tasks of split 's' .*such as b"):
        assert_disjoint(TASKS[1:], Panel("s", TASKS))
    assert_disjoint([Task("d", "x")], Panel("s", TASKS))


def test_a_failed_episode_is_a_task_that_was_not_won() -> None:
    won = made_trajectory("a", outcome=1.0)
    tally = Tally.of([won], failed=1)
    assert (tally.tasks, tally.success) == (2, 0.5)
    # Wilson at 1 of 2: (.5 + z²/4) / (1 + z²/2) +- ... = .0945 .. .9055
    assert tally.interval == pytest.approx((0.0945, 0.9055), abs=1e-4)
    assert (tally.mean_turns, tally.invalid_action_rate) == (2, 0)


def test_families_add_up_to_the_total() -> None:
    played = tuple(made_trajectory(n, outcome=float(n == "a")) for n in ("a", "b"))
    named = tuple(replace(t, task=task) for t, task in zip(played, TASKS, strict=False))
    evaluation = Evaluation(Panel("s", TASKS), 1.0, named, (TASKS[2],))
    families = evaluation.families
    assert {name: (tally.tasks, tally.success) for name, tally in families.items()} == {
        "x": (2, 0.5),
        "y": (1, 0.0),
    }
    assert sum(tally.tasks for tally in families.values()) == evaluation.total.tasks == 3
    assert evaluation.as_dict()["failed_episodes"] == 1
