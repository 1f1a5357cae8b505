import math

import pytest
import torch
from torch import Tensor

from rewardswap.core.clipping import clip_bounds
from rewardswap.core.surrogates import (
    cispo,
    dppo_kl,
    dppo_tv,
    dual_clip,
    gmpo,
    is_clipped,
    is_dual_clipped,
    ppo_clip,
    reinforce,
    sapo,
)

RATIO = torch.tensor([[1.5, 1.5, 0.5, 0.5, 1.1]])
ADVANTAGE = torch.tensor([[1.0, -1.0, 1.0, -1.0, 2.0]])
LOWER, UPPER = clip_bounds(torch.ones(1, 5), 0.2, 0.2, "additive")


def test_ppo_clip_is_pessimistic_on_both_sides() -> None:
    # -1.2 (clipped), 1.5, -.5, .8 (clipped), -2.2
    expected = torch.tensor([[-1.2, 1.5, -0.5, 0.8, -2.2]])
    torch.testing.assert_close(ppo_clip(RATIO, LOWER, UPPER, ADVANTAGE), expected)
    clipped = is_clipped(RATIO, LOWER, UPPER, ADVANTAGE)
    assert clipped.tolist() == [[True, False, False, True, False]]


def test_a_clipped_token_has_no_gradient_and_the_others_have_minus_the_advantage() -> None:
    ratio = RATIO.clone().requires_grad_()
    ppo_clip(ratio, LOWER, UPPER, ADVANTAGE).sum().backward()
    assert ratio.grad is not None
    assert ratio.grad.tolist() == [[0.0, 1.0, -1.0, 0.0, -2.0]]


def test_dual_clip_bounds_the_loss_of_a_negative_advantage() -> None:
    advantage = torch.tensor([[-1.0, -1.0, 1.0]])
    loss = torch.tensor([[5.0, 2.0, 5.0]])
    assert dual_clip(loss, advantage, 3.0).tolist() == [[3.0, 2.0, 5.0]]
    assert is_dual_clipped(loss, advantage, 3.0).tolist() == [[True, False, False]]
    with pytest.raises(ValueError, match=r"> 1, got 1"):
        dual_clip(loss, advantage, 1.0)


def test_cispo_weighs_every_token_by_its_clipped_ratio() -> None:
    logprob = torch.full((1, 5), -2.0, requires_grad=True)
    ratio = RATIO * (logprob - logprob.detach()).exp()
    loss = cispo(logprob, ratio, LOWER, UPPER, ADVANTAGE)
    loss.sum().backward()
    assert logprob.grad is not None
    # -clip(r)·A: -1.2, 1.2, -.8, .8, -2.2
    torch.testing.assert_close(logprob.grad, torch.tensor([[-1.2, 1.2, -0.8, 0.8, -2.2]]))
    torch.testing.assert_close(loss.detach(), -2.0 * logprob.grad)


def test_sapo_has_slope_one_at_its_center_and_fades_away_from_it() -> None:
    center = torch.tensor([[1.0, 1.0, 0.4, 0.4]])
    advantage = torch.tensor([[1.0, -1.0, 1.0, -1.0]])
    ratio = center.clone().requires_grad_()
    loss = sapo(ratio, center, advantage)
    loss.sum().backward()
    # 4/τ·σ(0) = 2/τ: 2, and 2/1.05 = 1.90476 for A < 0
    torch.testing.assert_close(loss.detach(), torch.tensor([[-2.0, 1.904762, -2.0, 1.904762]]))
    assert ratio.grad is not None
    torch.testing.assert_close(ratio.grad, -advantage)
    far = torch.full((1, 4), 9.0, requires_grad=True)
    sapo(far, center, advantage).sum().backward()
    assert far.grad is not None
    assert far.grad.abs().max() < 0.01


def test_gmpo_is_the_geometric_mean_of_pessimistically_clipped_ratios() -> None:
    log_ratio = torch.tensor([[0.6, 0.1, math.nan], [0.6, -0.5, 0.2]])
    mask = torch.tensor([[True, True, False], [True, True, True]])
    advantage = torch.tensor([[2.0, 2.0, math.nan], [-1.0, -1.0, -1.0]])
    bounds = clip_bounds(torch.zeros(2, 3), 0.4, 0.4, "additive")
    found = gmpo(
        log_ratio, *bounds, advantage, mask, torch.arange(len(mask))[:, None].expand(mask.shape)
    )
    # A > 0: e^((.4 + .1)/2)·2; A < 0: the larger side, e^((.6 - .4 + .2)/3)
    expected = torch.tensor([[-2 * math.exp(0.25)] * 2 + [0.0], [math.exp(0.4 / 3)] * 3])
    torch.testing.assert_close(found, expected)


def log_of(probabilities: list[float]) -> Tensor:
    return torch.tensor([probabilities]).log()


def test_dppo_tv_bounds_the_probability_not_the_ratio() -> None:
    old, new = log_of([0.01, 0.9, 0.9, 0.5]), log_of([0.05, 0.6, 0.75, 0.8])
    advantage = torch.tensor([[1.0, -1.0, -1.0, 1.0]])
    loss = dppo_tv((new - old).exp(), new, old, advantage, low=0.2, high=0.2)
    # +.04 kept at ratio 5; -.3 stopped; -.15 kept; +.3 stopped
    assert (loss != 0).tolist() == [[True, False, True, False]]


def test_dppo_kl_bounds_the_binary_kl_and_keeps_moves_back() -> None:
    old, new = log_of([0.5, 0.5, 0.5, 0.5]), log_of([0.9, 0.1, 0.6, 0.1])
    advantage = torch.tensor([[1.0, 1.0, 1.0, -1.0]])
    loss = dppo_kl((new - old).exp(), new, old, advantage, low=0.2, high=0.2)
    # KL(.5 ‖ .9) = .51 stopped; the same KL downwards with A > 0 is a move back; KL(.5 ‖ .6) = .02
    assert (loss != 0).tolist() == [[False, True, True, False]]


@pytest.mark.parametrize("surrogate", [dppo_tv, dppo_kl])
def test_dppo_on_policy_has_the_gradient_of_reinforce(surrogate) -> None:
    old = log_of([0.2, 0.9, 0.5])
    advantage = torch.tensor([[1.0, -1.0, 0.5]])
    new = old.clone().requires_grad_()
    surrogate((new - old).exp(), new, old, advantage, low=0.2, high=0.2).sum().backward()
    assert torch.equal(new.grad, -advantage)


def test_dppo_caps_the_ratio_where_asked() -> None:
    old, advantage = log_of([0.01]), torch.ones(1, 1)
    new = log_of([0.05]).requires_grad_()
    dppo_tv((new - old).exp(), new, old, advantage, low=0.2, high=0.2, ratio_cap=3.0).backward()
    assert new.grad.item() == -3.0


def test_reinforce() -> None:
    assert reinforce(torch.tensor([[-2.0, -1.0]]), torch.tensor([[3.0, -1.0]])).tolist() == [
        [6.0, -1.0]
    ]
