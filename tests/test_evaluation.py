"""Panels and tallies."""

from dataclasses import replace

import pytest

from made import made_trajectory
from rewardswap.evaluation import Evaluation, OriginTally, Panel, Tally, assert_disjoint
from rewardswap.rollout.engine import SamplingParams
from rewardswap.types import Task, Turn

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


def test_tasks_of_one_origin_are_not_trained_on_and_evaluated() -> None:
    panel = Panel("s", (Task("a", "x", "B1"), Task("b", "x", "B2"), Task("c", "x")), (), "product")
    training = [Task("d", "x", "B2"), Task("e", "x")]
    with pytest.raises(ValueError, match=r"1 of 3 tasks of split 's' have a product .*such as B2"):
        assert_disjoint(training, panel)
    assert_disjoint(training, panel, may_share_origins=True)
    assert_disjoint([Task("d", "x", "B3"), Task("e", "x")], panel)
    with pytest.raises(ValueError, match="1 of 3 tasks of split 's' are also trained on"):
        assert_disjoint([Task("a", "x", "B9")], panel, may_share_origins=True)


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
    evaluation = Evaluation(Panel("s", TASKS), SamplingParams(), named, (TASKS[2],))
    families = evaluation.families
    assert {name: (tally.tasks, tally.success) for name, tally in families.items()} == {
        "x": (2, 0.5),
        "y": (1, 0.0),
    }
    assert sum(tally.tasks for tally in families.values()) == evaluation.total.tasks == 3
    assert evaluation.as_dict()["failed_episodes"] == 1


def shop_evaluation() -> Evaluation:
    """Three tasks on a mug (won, scored .5, failed), one on a shirt (won), two of no product."""
    names = (("a", "mug"), ("b", "mug"), ("c", "mug"), ("d", "shirt"), ("e", ""), ("f", ""))
    tasks = [Task(name, "x", origin) for name, origin in names]
    scores = {"a": 1.0, "b": 0.5, "d": 1.0, "e": 0.25, "f": 1.0}
    played = [
        replace(
            made_trajectory(name, outcome=float(score == 1.0)),
            task=next(task for task in tasks if task.id == name),
            task_score=score,
        )
        for name, score in scores.items()
    ]
    return Evaluation(
        Panel("s", tuple(tasks), ("r",), "product"), SamplingParams(), tuple(played), (tasks[2],)
    )


def test_a_failed_episode_has_score_zero() -> None:
    # (1 + .5 + 0 + 1 + .25 + 1) / 6
    assert shop_evaluation().total.task_score == 0.625
    assert shop_evaluation().is_scored


def test_every_origin_counts_the_same() -> None:
    evaluation = shop_evaluation()
    origins = evaluation.origins
    assert origins is not None
    # mug 1/3, shirt 1/1, and the tasks without a product, each on its own, 0/1 and 1/1
    assert (origins.origins, origins.success) == (4, pytest.approx(7 / 12))
    # s = .5, t(.975, 3) = 3.18245: 7/12 +- .79561, cut to [0, 1]
    assert origins.interval == (0.0, 1.0)
    record = evaluation.as_dict()
    assert record["per_origin"] == {
        "origin": "product",
        "origins": 4,
        "success": pytest.approx(7 / 12),
        "interval": (0.0, 1.0),
    }
    assert record["panel"]["remarks"] == ["r"]
    assert (record["task_score"], record["families"]["x"]["task_score"]) == (0.625, 0.625)


def test_the_interval_over_origins_by_hand() -> None:
    # mean .5, s = .1, t(.975, 2) = 4.302653: .5 +- .248414
    tally = OriginTally.of([0.4, 0.5, 0.6])
    assert tally.interval == pytest.approx((0.251586, 0.748414), abs=1e-6)
    assert OriginTally.of([0.5]).interval is None
    assert OriginTally.of([1.0, 1.0]).interval is None


def test_without_origins_nothing_is_said_of_them() -> None:
    won = replace(made_trajectory("a", outcome=1.0), task=TASKS[0])
    evaluation = Evaluation(Panel("s", TASKS[:1]), SamplingParams(), (won,), ())
    assert evaluation.origins is None
    assert not evaluation.is_scored
    scored = Panel("s", TASKS[:1], scored=True)
    assert Evaluation(scored, SamplingParams(), (won,), ()).is_scored
    assert evaluation.as_dict()["per_origin"] is None
    assert evaluation.as_dict()["task_score"] == 1.0


def test_what_makes_numbers_say_little_is_said() -> None:
    shape = made_trajectory("a", outcome=1.0)
    good, odd = shape.turns

    def warned(*turns: Turn, success: bool = True) -> tuple[str, ...]:
        trajectory = replace(shape, turns=turns, success=success)
        return Evaluation(Panel("s", TASKS[:1]), SamplingParams(), (trajectory,), ()).warnings

    assert warned(good, good, odd) == ()
    assert warned(good, good, replace(odd, valid=False, truncated=True)) == ()
    assert "50% of the actions were not valid" in warned(good, replace(odd, valid=False))[0]
    assert warned(replace(odd, truncated=True)) == (
        "100% of the actions were cut at 24 tokens: raise action_tokens.",
    )
    assert warned(good, success=False) == (
        "No task was won: the outcome alone gives nothing to learn from.",
    )
    assert len(warned(replace(odd, valid=False, truncated=True), success=False)) == 3
