import math

import pytest
import torch

from rewardswap.core.segments import (
    dense_ids,
    masked_fill_zero,
    masked_mean,
    masked_variance,
    masked_whiten,
    segment_extreme,
    segment_mean,
    segment_size,
    segment_sum,
    spread,
)

VALUES = torch.tensor([[1.0, 3.0, math.nan], [8.0, -1e9, 0.0]])
MASK = torch.tensor([[True, True, False], [True, False, True]])


def test_masked_mean_skips_whatever_stands_off_the_mask() -> None:
    # (1 + 3 + 8 + 0) / 4 = 3
    assert masked_mean(VALUES, MASK).item() == 3.0


def test_masked_variance_is_unbiased() -> None:
    # deviations -2, 0, 5, -3: (4 + 0 + 25 + 9) / (4 - 1) = 38/3
    assert masked_variance(VALUES, MASK).item() == pytest.approx(38 / 3)


def test_masked_whiten_has_mean_zero_and_variance_one_on_the_mask_and_zero_off_it() -> None:
    whitened = masked_whiten(VALUES, MASK)
    assert masked_mean(whitened, MASK).item() == pytest.approx(0, abs=1e-6)
    assert masked_variance(whitened, MASK).item() == pytest.approx(1, abs=1e-6)
    assert (whitened[~MASK] == 0).all()


def test_masked_whiten_can_keep_the_mean_or_whiten_off_the_mask_too() -> None:
    finite = masked_fill_zero(VALUES, MASK)
    assert masked_mean(masked_whiten(finite, MASK, shift_mean=False), MASK).item() == (
        pytest.approx(3)
    )
    outside = masked_whiten(finite, MASK, outside="whitened")[~MASK]
    # (0 - 3) / sqrt(38/3)
    torch.testing.assert_close(outside, torch.full((2,), -3 / math.sqrt(38 / 3)))


def test_masked_fill_zero_sends_a_gradient_of_exactly_zero_off_the_mask() -> None:
    values = VALUES.clone().requires_grad_()
    (masked_fill_zero(values, MASK) * torch.tensor(math.nan)).sum().backward()
    assert values.grad is not None
    assert (values.grad[~MASK] == 0).all()


@pytest.mark.parametrize(
    ("statistic", "places", "needed"), [(masked_mean, 0, 1), (masked_variance, 1, 2)]
)
def test_too_small_a_mask_is_refused(statistic, places: int, needed: int) -> None:
    mask = torch.arange(3) < places
    with pytest.raises(ValueError, match=f"has {places} places.*needs {needed}"):
        statistic(torch.ones(3), mask)


def test_segment_statistics() -> None:
    values = torch.tensor([1.0, 2.0, 3.0, 6.0])
    segment = torch.tensor([0, 2, 0, 2])
    assert segment_size(segment).tolist() == [2, 0, 2]
    assert segment_sum(values, segment).tolist() == [4, 0, 8]
    assert segment_mean(values, segment).tolist() == [2, 0, 4]
    assert segment_extreme(values, segment, "amin").tolist() == [1, 0, 2]
    assert segment_extreme(-values, segment, "amax").tolist() == [-1, 0, -2]
    assert spread(segment_mean(values, segment), segment).tolist() == [2, 4, 2, 4]


def test_a_negative_segment_id_is_refused() -> None:
    with pytest.raises(ValueError, match=r"got -1.*dense_ids"):
        segment_sum(torch.ones(2), torch.tensor([0, -1]))


def test_dense_ids_number_the_distinct_tuples_in_sorted_order() -> None:
    first, second = torch.tensor([7, 3, 7, 3]), torch.tensor([1, -5, 0, -5])
    # sorted tuples: (3, -5), (7, 0), (7, 1)
    assert dense_ids(first, second).tolist() == [2, 0, 1, 0]
