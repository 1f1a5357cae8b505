import math

import pytest
import torch

from rewardswap.core.ratios import (
    cap_importance,
    log_ratio,
    replay_ratio,
    trajectory_log_ratio,
    turn_log_ratio,
)

MASK = torch.tensor([[True, True, False, True], [False, True, False, False]])
LOG_RATIO = torch.tensor([[0.2, 0.4, 0.0, -0.3], [0.0, 0.7, 0.0, 0.0]])
TURN = torch.tensor([[0, 0, -1, 1], [-1, 0, -1, -1]])


def by_row(values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    rows = torch.arange(len(mask))[:, None].expand(mask.shape)
    return trajectory_log_ratio(values, mask, rows)


def test_log_ratio_is_zero_off_the_mask_whatever_stands_there() -> None:
    logprob = torch.tensor([[-1.0, -2.0, math.nan, -1.0], [1.0, -1.0, -1e9, 0.0]])
    other = torch.tensor([[-1.5, -1.0, 1.0, -1.0], [math.nan, -2.0, -1e9, 5.0]])
    expected = [[0.5, -1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]
    assert log_ratio(logprob, other, MASK).tolist() == expected


def test_trajectory_log_ratio_is_the_mean_over_the_row() -> None:
    # (.2 + .4 - .3)/3 = .1
    expected = torch.tensor([[0.1, 0.1, 0.0, 0.1], [0.0, 0.7, 0.0, 0.0]])
    torch.testing.assert_close(by_row(LOG_RATIO, MASK), expected)


def test_turn_log_ratio_is_the_mean_over_the_turn_of_the_row() -> None:
    # (.2 + .4)/2 = .3; turn 0 of another row is another turn
    expected = torch.tensor([[0.3, 0.3, 0.0, -0.3], [0.0, 0.7, 0.0, 0.0]])
    torch.testing.assert_close(turn_log_ratio(LOG_RATIO, MASK, TURN), expected)


@pytest.mark.parametrize(
    "level", [by_row, lambda x, mask: turn_log_ratio(x, mask, TURN)], ids=["row", "turn"]
)
def test_the_gradient_of_a_level_goes_straight_through_to_each_token(level) -> None:
    values = LOG_RATIO.clone().requires_grad_()
    weight = torch.arange(8.0).reshape(2, 4)
    (level(values, MASK) * weight).sum().backward()
    assert values.grad is not None
    assert torch.equal(values.grad, torch.where(MASK, weight, 0.0))


@pytest.mark.parametrize("level", [by_row, lambda x, mask: turn_log_ratio(x, mask, TURN)])
def test_a_level_is_exactly_zero_on_policy(level) -> None:
    assert (level(torch.zeros(2, 4), MASK) == 0).all()


def test_replay_ratio_at_the_old_policy_is_the_center_to_the_bit() -> None:
    center = torch.tensor([[0.3, 1.7, 1.0, 2.9]])
    assert torch.equal(replay_ratio(torch.zeros(1, 4), center), center)


def test_replay_ratio_is_the_ratio_to_the_behavior_policy() -> None:
    new, old, behavior = torch.tensor([[[-1.0, -0.2]], [[-1.3, -0.6]], [[-0.9, -2.0]]])
    found = replay_ratio(new - old, (old - behavior).exp())
    torch.testing.assert_close(found, (new - behavior).exp())


CENTER = torch.tensor([[0.5, 1.0, 2.0, 3.0]])


@pytest.mark.parametrize(
    ("cap", "expected"),
    [("none", [0.5, 1, 2, 3]), ("truncate", [0.5, 1, 2, 2]), ("mask", [0.5, 1, 2, 0])],
)
def test_cap_importance(cap, expected: list[float]) -> None:
    assert cap_importance(CENTER, cap, 2.0).tolist() == [expected]


@pytest.mark.parametrize("cap", ["truncate", "mask"])
def test_a_cap_that_would_touch_rows_on_policy_is_refused(cap) -> None:
    with pytest.raises(ValueError, match=r">= 1, got 0.9"):
        cap_importance(CENTER, cap, 0.9)
