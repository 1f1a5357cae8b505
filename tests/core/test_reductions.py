import math

import pytest
import torch

from rewardswap.core.reductions import (
    constant_weights,
    row_mean_weights,
    token_mean_weights,
    trajectory_mean_weights,
    turn_mean_weights,
    weighted_sum,
)

MASK = torch.tensor([[True, True, False, True], [True, False, False, False]])
TRAJECTORY = torch.tensor([[5, 5, -1, 5], [9, 9, 9, 9]])
TURN = torch.tensor([[0, 0, -1, 1], [0, -1, -1, -1]])
REDUCTIONS = [
    token_mean_weights,
    row_mean_weights,
    lambda mask: trajectory_mean_weights(mask, TRAJECTORY),
    lambda mask: turn_mean_weights(mask, TURN, TRAJECTORY),
]


def test_token_mean() -> None:
    assert token_mean_weights(MASK).tolist() == [[0.25, 0.25, 0, 0.25], [0.25, 0, 0, 0]]


def test_trajectory_mean() -> None:
    # two trajectories of 3 and 1 tokens: 1/6 each, 1/2
    expected = torch.tensor([[1 / 6, 1 / 6, 0, 1 / 6], [0.5, 0, 0, 0]])
    torch.testing.assert_close(trajectory_mean_weights(MASK, TRAJECTORY), expected)
    torch.testing.assert_close(row_mean_weights(MASK), expected)


def test_turn_mean() -> None:
    # three turns of 2, 1 and 1 tokens: 1/6 each, 1/3, 1/3
    expected = torch.tensor([[1 / 6, 1 / 6, 0, 1 / 3], [1 / 3, 0, 0, 0]])
    torch.testing.assert_close(turn_mean_weights(MASK, TURN, TRAJECTORY), expected)


def test_constant() -> None:
    assert constant_weights(MASK, 8.0).tolist() == [[0.125, 0.125, 0, 0.125], [0.125, 0, 0, 0]]


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_weights_sum_to_one_over_the_mask_and_are_zero_off_it(reduction) -> None:
    weights = reduction(MASK)
    assert weights.sum().item() == pytest.approx(1)
    assert (weights[~MASK] == 0).all()


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_an_empty_mask_is_refused(reduction) -> None:
    with pytest.raises(ValueError, match="no token is trained on"):
        reduction(torch.zeros_like(MASK))


def test_a_constant_that_is_not_positive_is_refused() -> None:
    with pytest.raises(ValueError, match=r"> 0 tokens, got 0"):
        constant_weights(MASK, 0.0)


def test_a_trajectory_weighs_the_same_in_one_row_or_in_one_row_per_turn() -> None:
    split_mask = torch.tensor([[True, True], [True, False], [True, False]])
    split_trajectory = torch.tensor([[5, 5], [5, -1], [9, -1]])
    split_turn = torch.tensor([[0, 0], [1, -1], [0, -1]])
    whole = trajectory_mean_weights(MASK, TRAJECTORY)[MASK]
    assert torch.equal(trajectory_mean_weights(split_mask, split_trajectory)[split_mask], whole)
    turns = turn_mean_weights(MASK, TURN, TRAJECTORY)[MASK]
    found = turn_mean_weights(split_mask, split_turn, split_trajectory)[split_mask]
    assert torch.equal(found, turns)


def test_weighted_sum_ignores_what_stands_off_the_mask() -> None:
    values = torch.tensor([[1.0, 2.0, math.nan, 3.0], [6.0, -1e9, math.inf, 1.0]])
    # (1 + 2 + 3 + 6)/4 = 3
    assert weighted_sum(values, token_mean_weights(MASK)).item() == 3.0
