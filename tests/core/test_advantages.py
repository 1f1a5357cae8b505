import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rewardswap.core.advantages import (
    batch_whiten,
    by_anchor,
    centered_by,
    gdpo,
    group_centered,
    group_z_score,
    leave_one_out,
    mean_normalised,
    optimal_baseline,
    progpo,
    softmax_advantage,
    z_score_by,
)


def softmax_at_one(returns: Tensor) -> Tensor:
    return softmax_advantage(returns, 1.0)


def equal_lengths(returns: Tensor) -> Tensor:
    return optimal_baseline(returns, torch.ones_like(returns))


ESTIMATORS = [
    group_centered,
    group_z_score,
    leave_one_out,
    softmax_at_one,
    mean_normalised,
    equal_lengths,
]


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("value", [0.0, 0.1, 0.3, 0.7, 1 / 3, 0.35])
@pytest.mark.parametrize("count", [1, 2, 3, 7, 49])
def test_equal_returns_have_an_advantage_of_exactly_zero(estimator, value, count) -> None:
    assert (estimator(torch.full((count,), value)) == 0).all()


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_returns_that_differ_by_rounding_have_an_advantage_of_zero(estimator) -> None:
    third = torch.tensor(1 / 3)
    almost = torch.stack([third, third.nextafter(torch.tensor(1.0)), third, third])
    assert estimator(almost).abs().max() < 1e-6


def test_a_small_real_difference_is_not_taken_for_rounding() -> None:
    # 1e-4 of 0.5 is far above rounding: the z-score of two is ±1/sqrt(2), less the epsilon's part
    low, high = group_z_score(torch.tensor([0.5, 0.5001])).tolist()
    assert (low, high) == (pytest.approx(-0.69718, abs=1e-3), pytest.approx(0.69718, abs=1e-3))


def test_group_centered() -> None:
    # mean 1/4
    assert group_centered(torch.tensor([1.0, 0, 0, 0])).tolist() == [0.75, -0.25, -0.25, -0.25]


def test_group_z_score_divides_by_the_unbiased_std() -> None:
    # mean 1/4, variance (9 + 1 + 1 + 1)/16/3 = 1/4, std 1/2: 0.75/0.5 = 1.5, -0.25/0.5 = -0.5
    expected = torch.tensor([1.5, -0.5, -0.5, -0.5])
    torch.testing.assert_close(
        group_z_score(torch.tensor([1.0, 0, 0, 0])), expected, atol=5e-6, rtol=0
    )


def test_group_z_score_counts_every_trajectory_once() -> None:
    # A 2-turn success and an 8-turn failure: baseline 0.5, not 0.2
    advantage = group_centered(torch.tensor([1.0, 0.0]))
    assert advantage.tolist() == [0.5, -0.5]


def test_leave_one_out() -> None:
    # 1 - (0 + 0.5)/2 = 0.75; 0 - (1 + 0.5)/2 = -0.75; 0.5 - (1 + 0)/2 = 0
    torch.testing.assert_close(
        leave_one_out(torch.tensor([1.0, 0.0, 0.5])), torch.tensor([0.75, -0.75, 0.0])
    )


@pytest.mark.parametrize(
    ("returns", "expected"),
    [
        ([0.0, 1, 0, 1], [-0.93111, 0.93111, -0.93111, 0.93111]),
        ([0, 0.5, 1], [-0.9126, -0.53728, 1.44988]),
    ],
)
def test_softmax_advantage_golden(returns: list[float], expected: list[float]) -> None:
    # 4 e^(1/.3) / (2 e^(1/.3) + 2) - 1 = .93111
    advantage = softmax_advantage(torch.tensor(returns), 0.3)
    torch.testing.assert_close(advantage, torch.tensor(expected), atol=1e-5, rtol=0)


def test_softmax_advantage_at_high_temperature_is_the_centred_return() -> None:
    returns = torch.tensor([0.0, 0.2, 1.0])
    scaled = 1000 * softmax_advantage(returns, 1000.0)
    torch.testing.assert_close(scaled, group_centered(returns), atol=1e-3, rtol=0)


def test_mean_normalised() -> None:
    # mean 0.25: the success gets (1 - 0.25)/0.25 = 3, a failure -1
    assert mean_normalised(torch.tensor([0.0, 1, 0, 0])).tolist() == [-1, 3, -1, -1]


def test_optimal_baseline_weighs_by_length() -> None:
    # baseline (3·1 + 1·0)/(3 + 1) = 0.75
    advantage = optimal_baseline(torch.tensor([1.0, 0.0]), torch.tensor([3.0, 1.0]))
    assert advantage.tolist() == [0.25, -0.75]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: softmax_advantage(torch.zeros(2), 0.0), "temperature must be > 0.*got 0.0"),
        (lambda: mean_normalised(torch.tensor([-1.0, 1])), "returns >= 0, got .-1.0"),
    ],
)
def test_bad_input_is_refused(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


RETURNS = st.lists(st.integers(0, 8).map(lambda i: i / 8), min_size=2, max_size=9)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@settings(max_examples=25, deadline=None)
@given(returns=RETURNS, shuffle=st.randoms(use_true_random=False))
def test_permuted_siblings_have_permuted_advantages(estimator, returns, shuffle) -> None:
    order = list(range(len(returns)))
    shuffle.shuffle(order)
    values = torch.tensor(returns)
    torch.testing.assert_close(
        estimator(values[order]), estimator(values)[order], atol=1e-6, rtol=1e-6
    )


@pytest.mark.parametrize(
    "estimator", [group_centered, group_z_score, leave_one_out, softmax_at_one, equal_lengths]
)
@settings(max_examples=25, deadline=None)
@given(returns=RETURNS)
def test_a_shift_of_all_returns_changes_nothing(estimator, returns) -> None:
    values = torch.tensor(returns)
    torch.testing.assert_close(estimator(values + 2.0), estimator(values), atol=1e-6, rtol=1e-6)


@settings(max_examples=25, deadline=None)
@given(returns=RETURNS)
def test_centred_estimators_sum_to_zero(returns) -> None:
    for estimator in (group_centered, group_z_score, leave_one_out, softmax_at_one):
        assert estimator(torch.tensor(returns)).sum().item() == pytest.approx(0, abs=1e-5)


def test_segment_forms_equal_the_group_forms() -> None:
    values = torch.tensor([1.0, 0.2, 0.0, 0.9, 0.5])
    segment = torch.tensor([0, 1, 0, 1, 0])
    for by_segment, of_group in ((centered_by, group_centered), (z_score_by, group_z_score)):
        found = by_segment(values, segment)
        for s in (0, 1):
            assert torch.equal(found[segment == s], of_group(values[segment == s]))


def test_by_anchor_compares_only_turns_of_the_same_state() -> None:
    returns = torch.tensor([[1.0, 5.0], [0.0, math.nan]])
    anchor = torch.tensor([[4, 9], [4, 9]])
    mask = torch.tensor([[True, True], [True, False]])
    # state 4: returns 1 and 0, mean .5, std sqrt(.5): ±.5/.7071 = ±.7071; state 9: alone
    expected = torch.tensor([[math.sqrt(0.5), 0.0], [-math.sqrt(0.5), 0.0]])
    torch.testing.assert_close(by_anchor(returns, anchor, mask), expected, atol=2e-6, rtol=0)
    centred = by_anchor(returns, anchor, mask, divide_by_std=False)
    assert centred.tolist() == [[0.5, 0.0], [-0.5, 0.0]]


def test_by_anchor_of_nothing_is_zero() -> None:
    mask = torch.zeros(2, 3).bool()
    assert (by_anchor(torch.ones(2, 3), torch.zeros(2, 3).long(), mask) == 0).all()


def test_batch_whiten() -> None:
    # mean 2, deviations ±1, unbiased std sqrt(2): ±1/(1.41421 + 1e-4)
    whitened = batch_whiten(torch.tensor([1.0, 3.0]))
    torch.testing.assert_close(whitened, torch.tensor([-0.707057, 0.707057]), atol=1e-6, rtol=0)


def test_batch_whiten_does_not_blow_up_a_batch_without_signal() -> None:
    weak = torch.tensor([0.0, 1e-5, -1e-5])
    assert torch.equal(batch_whiten(weak), weak)
    alone = torch.tensor([3.0])
    assert torch.equal(batch_whiten(alone), alone)


GDPO_REWARDS = torch.tensor([[0.0, 0], [1, 1], [0, 1], [1, 0]])
GDPO_GROUP = torch.tensor([0, 0, 1, 1])


def test_gdpo_golden() -> None:
    # group a: both rewards differ, z = ∓.7071 each, sum ∓1.4142; group b: the two cancel
    plain = gdpo(GDPO_REWARDS, GDPO_GROUP, torch.ones(2), whiten=False)
    torch.testing.assert_close(plain, torch.tensor([-1.414, 1.414, 0, 0]), atol=1e-3, rtol=0)
    # std of (-1.414, 1.414, 0, 0) is sqrt(4/3) = 1.1547: 1.414/1.1547 = 1.2247
    whitened = gdpo(GDPO_REWARDS, GDPO_GROUP, torch.ones(2))
    torch.testing.assert_close(whitened, torch.tensor([-1.2246, 1.2246, 0, 0]), atol=5e-4, rtol=0)


def test_gdpo_of_one_reward_is_the_z_score_to_the_bit() -> None:
    rewards = torch.tensor([0.3, 0.9, 0.1, 0.4, 0.8])
    group = torch.zeros(5).long()
    found = gdpo(rewards[:, None], group, torch.ones(1), whiten=False, epsilon=1e-6)
    assert torch.equal(found, group_z_score(rewards))


def test_gdpo_does_not_see_the_scale_of_a_reward() -> None:
    scaled = GDPO_REWARDS * torch.tensor([7.0, 0.5]) + torch.tensor([3.0, -1.0])
    torch.testing.assert_close(
        gdpo(scaled, GDPO_GROUP, torch.ones(2)),
        gdpo(GDPO_REWARDS, GDPO_GROUP, torch.ones(2)),
        atol=1e-3,
        rtol=0,
    )


def test_progpo_golden() -> None:
    outcome = torch.tensor([0.0, 1, 0, 0, 1, 1])
    progress = torch.tensor([0.9, 0.2, 0.1, 0.3, 0.2, 0.8])
    group = torch.tensor([10, 10, 4, 4, 7, 7])
    own = torch.tensor([-0.7071, 0.7071, 0, 0, 0, 0])
    # one of three groups failed: strength .3/3 = .1; progress ∓.1 over a population std of .1 = ∓1
    expected = torch.tensor([-0.7071, 0.7071, -0.1, 0.1, 0, 0])
    torch.testing.assert_close(
        progpo(own, outcome, progress, group), expected, atol=1e-6, rtol=1e-5
    )


def test_progpo_leaves_failed_groups_of_equal_progress_and_successful_groups_alone() -> None:
    zero = torch.zeros(4)
    group = torch.tensor([0, 0, 1, 1])
    same = progpo(zero, zero, torch.full((4,), 0.3), group)
    assert (same == 0).all()
    own = torch.tensor([1.0, -1.0, 0.5, -0.5])
    outcome = torch.tensor([1.0, 0.0, 0.0, 1.0])
    assert torch.equal(progpo(own, outcome, torch.rand(4), group), own)
