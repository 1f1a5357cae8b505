import pytest
import torch

from rewardswap.core.values import clipped_value_loss, value_is_clipped

VALUE = torch.tensor([[1.0, 0.1, 3.0]])
OLD = torch.tensor([[0.0, 0.0, 0.0]])
TARGET = torch.tensor([[0.0, 1.0, 4.0]])


def test_clipped_value_loss() -> None:
    # clip to ±.5: .5, .1, .5; max(1, .25) = 1; .81; max(1, 3.5²) = 12.25
    found = clipped_value_loss(VALUE, OLD, TARGET, 0.5)
    torch.testing.assert_close(found, torch.tensor([[1.0, 0.81, 12.25]]))
    assert value_is_clipped(VALUE, OLD, TARGET, 0.5).tolist() == [[False, False, True]]


def test_a_clipped_place_pulls_no_more() -> None:
    value = VALUE.clone().requires_grad_()
    clipped_value_loss(value, OLD, TARGET, 0.5).sum().backward()
    # 2(V - G): 2, -1.8, and 0 where the clip is active
    assert value.grad is not None
    torch.testing.assert_close(value.grad, torch.tensor([[2.0, -1.8, 0.0]]))


def test_a_negative_clip_is_refused() -> None:
    with pytest.raises(ValueError, match=r">= 0, got -0.5"):
        clipped_value_loss(VALUE, OLD, TARGET, -0.5)
