import pytest

from rewardswap.rewards.calibration import calibration_curve, expected_calibration_error
from rewardswap.rewards.ranking import rank_correlation_within


def test_calibration_by_hand() -> None:
    curve = calibration_curve([0.0, 0.05, 0.625, 0.6875, 1.0], [False, True, True, True, False])
    assert [part.count for part in curve] == [2, 0, 0, 0, 0, 0, 2, 0, 0, 1]
    assert (curve[0].predicted, curve[0].succeeded) == (0.025, 0.5)
    assert (curve[6].predicted, curve[6].succeeded) == (0.65625, 1.0)
    assert (curve[9].predicted, curve[9].succeeded) == (1.0, 0.0)
    assert (curve[1].predicted, curve[1].succeeded) == (None, None)
    assert [(part.lower, part.upper) for part in curve][6] == (0.6, 0.7)
    # (2 * .475 + 2 * .34375 + 1 * 1) / 5
    assert expected_calibration_error(curve) == pytest.approx(0.5275)


def test_edges_belong_to_the_upper_bin() -> None:
    curve = calibration_curve([n / 10 for n in range(11)], [True] * 11)
    assert [part.count for part in curve] == [1] * 9 + [2]


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_what_is_no_chance_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="outside"):
        calibration_curve([0.5, value], [True, False])


def test_rank_correlation_inside_tasks_by_hand() -> None:
    # a: ranks 1 2 3 against 1 2 3; b: 2 1 against 1 2; c: equal scores; d: equal outcomes
    tasks = ["a", "b", "a", "b", "a", "c", "c", "d", "d"]
    scores = [0.1, 0.9, 0.2, 0.1, 0.7, 0.3, 0.3, 0.1, 0.9]
    outcomes = [0.0, 0.0, 0.5, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0]
    found, count = rank_correlation_within(scores, outcomes, tasks)
    assert (found, count) == (pytest.approx((1 - 1 + 0) / 3), 3)
    assert rank_correlation_within([0.1, 0.2], [1.0, 1.0], ["a", "a"]) == (None, 0)


def test_rank_correlation_with_ties() -> None:
    # ranks 1 2 3 4 against 1.5 1.5 3.5 3.5: 4 / sqrt(5 * 4)
    found, _ = rank_correlation_within([0.1, 0.2, 0.3, 0.4], [0.0, 0.0, 1.0, 1.0], ["a"] * 4)
    assert found == pytest.approx(4 / 20**0.5)
    with pytest.raises(ValueError, match="1 of 2 scores"):
        rank_correlation_within([float("inf"), 0.0], [0.0, 1.0], ["a", "a"])
