import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardswap.comparison.intervals import (
    crossed,
    holm,
    improvement,
    interquartile_mean,
    over_seeds,
    share_over_seeds,
    verdict,
)


def scores(*rows: list[float]) -> np.ndarray:
    return np.array(rows, dtype=np.float64)


def test_a_mean_over_three_seeds_has_students_interval() -> None:
    # s = .1, t(.975, 2) = 4.302653, reach 4.302653 * .1 / √3 = .248414
    found = over_seeds([0.5, 0.6, 0.7])
    assert found.interval is not None
    assert (found.value, found.seeds) == (pytest.approx(0.6), 3)
    assert found.interval == pytest.approx((0.6 - 0.248414, 0.6 + 0.248414), abs=1e-6)


def test_one_seed_has_no_interval_and_none_no_mean() -> None:
    assert over_seeds([0.5]).interval is None
    with pytest.raises(ValueError, match="at least one seed"):
        over_seeds([])


def test_the_interval_of_a_share_stays_a_share() -> None:
    assert share_over_seeds([0.0, 1.0]).interval == (0.0, 1.0)
    assert share_over_seeds([0.5]).interval is None


def test_the_interquartile_mean_is_that_of_the_middle_half() -> None:
    # of 0, .1, .2, .3, .4, .5, .6, 1 the middle four: .2, .3, .4, .5
    found = interquartile_mean(scores([0.0, 0.3, 1.0, 0.2], [0.1, 0.6, 0.5, 0.4]))
    assert found.value == pytest.approx(0.35)
    assert interquartile_mean(scores([0.0, 0.3, 1.0, 0.2])).interval is None


def test_seeds_are_drawn_anew_inside_each_type() -> None:
    # whole seeds drawn together would always have the mean .5; of four values drawn inside the
    # types all but one are 0 with chance 5/16, and then the middle two are
    assert interquartile_mean(scores([0.0, 1.0], [1.0, 0.0])).interval == (0.0, 1.0)
    # types differ, seeds do not: nothing varies
    assert interquartile_mean(scores([0.2, 0.8], [0.2, 0.8])).interval == pytest.approx((0.5, 0.5))


def test_the_chance_of_improvement_counts_ties_half() -> None:
    # .5 against .5 and .4: a tie and a win; .7 wins twice: 3.5 of 4
    found = improvement(scores([0.5], [0.7]), scores([0.5], [0.4]))
    assert found.value == pytest.approx(0.875)
    # a draw of .5, .5 against .5, .5 has the chance 1/16
    assert found.interval == (0.5, 1.0)
    assert improvement(scores([0.5]), scores([0.4], [0.3])).interval is None


def test_chances_of_improvement_are_means_over_types() -> None:
    found = improvement(scores([1.0, 0.0], [1.0, 0.0]), scores([0.0, 1.0], [0.0, 1.0]))
    assert (found.value, found.interval) == (0.5, (0.5, 0.5))


def test_crossed_draws_vary_over_seeds_and_over_tasks() -> None:
    # two draws of 0 and 1 are both 0, or both 1, with chance 1/4 each
    assert crossed(scores([1.0, 0.0], [1.0, 0.0])).interval == (0.0, 1.0)
    assert crossed(scores([1.0, 1.0], [0.0, 0.0])).interval == (0.0, 1.0)
    assert crossed(scores([0.5, 0.5], [0.5, 0.5])).interval == (0.5, 0.5)
    assert crossed(scores([1.0, 0.0])).interval is None


def test_crossed_draws_have_the_spread_of_two_factors() -> None:
    # differences a_s + b_t: Var = Var(a)/S + Var(b)/T of the drawn means, 25/6/5... by hand:
    # a = 0, 4 has variance 4, b = 0, 2, 4, 6 has 5: √(4/2 + 5/4) = 1.803
    rows = np.add.outer([0.0, 4.0], [0.0, 2.0, 4.0, 6.0])
    found = crossed(rows)
    assert found.value == 5.0
    assert found.interval is not None
    low, high = found.interval
    assert (high - low) / 2 == pytest.approx(1.959964 * 1.803, rel=0.06)


def test_the_same_numbers_have_the_same_bits() -> None:
    rows = scores([0.1, 0.5], [0.3, 0.2], [0.7, 0.9])
    assert interquartile_mean(rows) == interquartile_mean(rows)
    assert crossed(rows) == crossed(rows)


def test_holm_by_hand() -> None:
    # .01 * 3, .03 * 2, .04 * 1 but no smaller than .06
    assert holm([0.01, None, 0.04, 0.03]) == pytest.approx([0.03, None, 0.06, 0.06])
    assert holm([0.6, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_is_between_the_p_value_and_bonferronis_and_keeps_the_order(ps: list[float]) -> None:
    adjusted = holm(ps)
    for p, q in zip(ps, adjusted, strict=True):
        assert q is not None
        assert p <= q <= min(1.0, p * len(ps)) + 1e-12
    for p, q in zip(ps, adjusted, strict=True):
        for other, larger in zip(ps, adjusted, strict=True):
            if p < other:
                assert q is not None and larger is not None and q <= larger


@pytest.mark.parametrize(
    ("direction", "interval", "said"),
    [
        ("higher", (0.01, 0.2), "agrees"),
        ("higher", (-0.2, -0.01), "disagrees"),
        ("higher", (-0.01, 0.2), "undecided"),
        ("higher", (0.0, 0.2), "undecided"),
        ("higher", None, "undecided"),
        ("lower", (-0.2, -0.01), "agrees"),
        ("lower", (0.01, 0.2), "disagrees"),
    ],
)
def test_a_verdict_needs_the_whole_interval_on_one_side(
    direction: str, interval: tuple[float, float] | None, said: str
) -> None:
    assert verdict(direction, interval) == said  # type: ignore[arg-type]


def test_another_direction_is_refused() -> None:
    with pytest.raises(Exception, match="claim_direction"):
        verdict("sideways", (0.1, 0.2))  # type: ignore[arg-type]
