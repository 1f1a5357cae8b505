from pathlib import Path

import pytest

from rewardswap.report.records import read_run
from rewardswap.report.tables import (
    Estimate,
    TurnQuality,
    difference,
    duration,
    estimate,
    family_rows,
    headline,
    mean_auc_at_fixed_turns,
    plain,
    process_reward_quality,
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
    before = {"success": 0.1, "families": {"old": {"games": 5, "success": 0.2}}}
    after = {"success": 0.4, "families": {"new": {"games": 6, "success": 0.5}}}
    new, old, everything = family_rows(before, after)
    assert (new.name, new.games, new.before, new.difference) == ("new", 6, None, None)
    assert (old.name, old.games, old.after) == ("old", 5, None)
    assert everything.difference is not None
    assert everything.difference.value == pytest.approx(0.3)
    assert everything.games is None


def quality_with(aucs: list[float], total: float, length_only: float) -> list[str]:
    turns = [{"turn": turn, "live": 100, "auc": auc} for turn, auc in enumerate(aucs)]
    document = {"auc_total": total, "auc_length_only": length_only, "turns": turns}
    quality = process_reward_quality(document)
    assert quality is not None
    return quality.warnings


@pytest.mark.parametrize(
    ("aucs", "total", "warned"),
    [
        ([0.51, 0.48, 0.47, 0.53], 0.946, True),
        ([0.64, 0.74, 0.77, 0.86], 0.99, False),
        ([0.51, 0.48], 0.55, False),
        ([], 0.95, False),
    ],
)
def test_only_a_turn_counter_is_called_one(aucs: list[float], total: float, warned: bool) -> None:
    warnings = quality_with(aucs, total, length_only=0.5)
    assert any("turn counter" in warning for warning in warnings) is warned


def test_a_reward_no_better_than_the_length_is_said_to_be() -> None:
    assert "no better than that of an episode's length" in quality_with([0.7], 0.9, 0.95)[0]
    assert quality_with([0.7], 0.96, 0.95) == []


def test_fixed_turns_weigh_by_live_episodes() -> None:
    turns = [
        TurnQuality(3, 30, 0.5, None),
        TurnQuality(5, 10, 0.9, None),
        TurnQuality(7, 9, None, None),
    ]
    # (30 · .5 + 10 · .9)/40
    assert mean_auc_at_fixed_turns(turns) == pytest.approx(0.6)
    assert mean_auc_at_fixed_turns(turns[2:]) is None


def test_values_are_written_for_readers() -> None:
    assert plain(1234567) == "1\u202f234\u202f567"
    assert plain(0.00012345) == "0.0001234"
    assert plain([0.5, None]) == "[0.5, –]"
    assert plain(True) == "True"
    assert plain(59.7, "seconds") == "1 min 00 s"
    assert duration(7384.0) == "2 h 03 min"
