import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardswap.statistics import difference_interval, mean_interval, wilson_interval


def test_wilson_interval_of_eight_in_ten() -> None:
    # z = 1.959964, z² = 3.841459; centre (.8 + .192073)/(1 + .384146) = .716740;
    # half width 1.959964 √(.8·.2/10 + 3.841459/400)/1.384146 = 1.959964·.160011/1.384146 = .226576
    low, high = wilson_interval(8, 10)
    assert low == pytest.approx(0.716740 - 0.226576, abs=2e-6)
    assert high == pytest.approx(0.716740 + 0.226576, abs=2e-6)


def test_wilson_interval_of_no_success() -> None:
    # p = 0: the upper end is (z²/n)/(1 + z²/n) = .3841459/1.3841459 = .277533
    low, high = wilson_interval(0, 10)
    assert low == pytest.approx(0.0, abs=1e-12)
    assert high == pytest.approx(0.277533, abs=1e-6)


def test_wilson_interval_of_nothing_but_success_mirrors_that_of_none() -> None:
    low, high = wilson_interval(10, 10)
    assert low == pytest.approx(1 - 0.277533, abs=1e-6)
    assert high == pytest.approx(1.0, abs=1e-12)


def test_more_confidence_is_a_wider_interval() -> None:
    low, high = wilson_interval(3, 20)
    wide_low, wide_high = wilson_interval(3, 20, confidence=0.99)
    assert wide_low < low < 3 / 20 < high < wide_high


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_interval_holds_the_rate_and_stays_a_share(counts: tuple[int, int]) -> None:
    successes, trials = counts
    low, high = wilson_interval(successes, trials)
    assert -1e-12 <= low <= successes / trials + 1e-12
    assert successes / trials - 1e-12 <= high <= 1 + 1e-12


def test_no_trial_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one trial, got trials=0"):
        wilson_interval(0, 0)


@pytest.mark.parametrize("successes", [-1, 6])
def test_successes_must_be_among_the_trials(successes: int) -> None:
    with pytest.raises(ValueError, match=f"successes={successes} is not between 0 and trials=5"):
        wilson_interval(successes, 5)


def test_difference_interval_adds_the_near_arms_in_squares() -> None:
    # d = .5; low: √((.8-.7)² + (.4-.3)²) = √.02 = .141421; high: √((.85-.8)² + (.3-.25)²) = .070711
    low, high = difference_interval(0.3, (0.25, 0.4), 0.8, (0.7, 0.85))
    assert low == pytest.approx(0.5 - 0.141421, abs=1e-6)
    assert high == pytest.approx(0.5 + 0.070711, abs=1e-6)


def test_difference_interval_turns_around_with_its_arguments() -> None:
    before, after = (0.3, (0.25, 0.4)), (0.8, (0.7, 0.85))
    low, high = difference_interval(*before, *after)
    assert difference_interval(*after, *before) == pytest.approx((-high, -low))


def test_mean_interval_by_hand() -> None:
    # m = 2, s = 1, t(.975, 2) = 4.302653: 4.302653/√3 = 2.484138
    assert mean_interval([3.0, 1.0, 2.0]) == pytest.approx((2 - 2.484138, 2 + 2.484138), abs=1e-6)
    # m = .5, s = √.5, t(.975, 1) = 12.706205: 12.706205 · √.5/√2 = 6.353102
    assert mean_interval([0.0, 1.0]) == pytest.approx((0.5 - 6.353102, 0.5 + 6.353102), abs=1e-6)
    # t(.75, 2) = .816497
    assert mean_interval([1.0, 2.0, 3.0], 0.5) == pytest.approx((1.528595, 2.471405), abs=1e-6)


@pytest.mark.parametrize("values", [[], [0.5], [0.5, 0.5, 0.5]])
def test_values_that_do_not_differ_have_no_interval(values: list[float]) -> None:
    assert mean_interval(values) is None
