from pathlib import Path

import pytest

from rewardswap.report.records import read_run
from rewardswap.report.tables import (
    Estimate,
    difference,
    duration,
    estimate,
    family_rows,
    has_scores,
    headline,
    origin_row,
    plain,
)


def test_the_summary_speaks_where_an_evaluation_is_missing(run_folder: Path) -> None:
    (run_folder / "evaluation-after.json").unlink()
    summary = '{"success_before": 0.15, "success_after": 0.5, "success_after_interval": [0.4, 0.6]}'
    (run_folder / "summary.json").write_text(summary)
    found = headline(read_run(run_folder))
    assert found.before == Estimate(0.15, (0.1, 0.3))
    assert found.after == Estimate(0.5, (0.4, 0.6))


def test_an_interval_needs_two_finite_ends() -> None:
    assert estimate(0.5, [0.4]) == Estimate(0.5, None)
    assert estimate(0.5, [0.4, None]) == Estimate(0.5, None)
    assert estimate(None, [0.4, 0.6]) is None


def test_a_difference_of_unknown_intervals_has_none() -> None:
    found = difference(Estimate(0.25, None), Estimate(0.5, (0.4, 0.6)))
    assert found == Estimate(0.25, None)
    assert difference(None, Estimate(0.5, None)) is None


def test_a_family_seen_only_once_keeps_its_row() -> None:
    before = {"success": 0.1, "families": {"old": {"tasks": 5, "success": 0.2}}}
    after = {"success": 0.4, "families": {"new": {"tasks": 6, "success": 0.5}}}
    new, old, everything = family_rows(before, after)
    assert (new.name, new.size, new.before, new.difference) == ("new", "6 tasks", None, None)
    assert (old.name, old.size, old.after) == ("old", "5 tasks", None)
    assert everything.difference is not None
    assert everything.difference.value == pytest.approx(0.3)
    assert everything.size is None


def test_a_score_is_shown_only_where_it_says_something_else() -> None:
    won = {"success": 0.5, "task_score": 0.5, "families": {"x": {"success": 0.5}}}
    assert not has_scores(family_rows(won, won))
    assert not has_scores(family_rows({"success": 0.5, "families": {"x": {}}}, None))
    scored = family_rows(None, {**won, "task_score": 0.625})
    assert has_scores(scored)
    assert (scored[-1].score_before, scored[-1].score_after) == (None, 0.625)


def test_the_row_per_origin() -> None:
    assert origin_row({"per_origin": None}, None) is None
    after = {"per_origin": {"origin": "product", "origins": 3, "success": 0.5, "interval": [0, 1]}}
    row = origin_row({"per_origin": None}, after)
    assert row is not None
    assert (row.name, row.size, row.before) == ("per product", "3 products", None)
    assert row.after == Estimate(0.5, (0.0, 1.0))


def test_values_are_written_for_readers() -> None:
    assert plain(1234567) == "1\u202f234\u202f567"
    assert plain(75520.0) == "75\u202f520"
    assert plain(float("inf")) == "inf"
    assert plain(0.00012345) == "0.0001234"
    assert plain([0.5, None]) == "[0.5, –]"
    assert plain(True) == "True"
    assert plain(59.7, "seconds") == "1 min 00 s"
    assert duration(7384.0) == "2 h 03 min"
