import math

import pytest
import torch

from rewardswap.core.returns import (
    discounted_returns,
    generalised_advantage,
    last_place_reward,
    length_adaptive_trace,
)


def test_undiscounted_returns_to_go_are_conserved() -> None:
    # 1.3 = .1 + 0 + .2 + 1, then 1.2, 1.2, 1
    reward = torch.tensor([[0.1, 0.0, 0.2, 1.0]])
    returns = discounted_returns(reward, torch.ones(1, 4).bool(), 1.0)
    torch.testing.assert_close(returns, torch.tensor([[1.3, 1.2, 1.2, 1.0]]))


def test_discounted_returns_of_ragged_rows() -> None:
    reward = torch.tensor([[0.0, 0.0, 10.0], [4.0, math.nan, -1e9]])
    mask = torch.tensor([[True, True, True], [True, False, False]])
    # .5²·10, .5·10, 10 | 4
    returns = discounted_returns(reward, mask, 0.5)
    assert returns.tolist() == [[2.5, 5.0, 10.0], [4.0, 0.0, 0.0]]


REWARD = torch.tensor([[0.0, 0, 0, 0, 1]])
VALUE = torch.tensor([[0.5, 0.5, 0.6, 0.7, 0.9]])
EVERY = torch.ones(1, 5).bool()
ENDED = torch.zeros(1)


def test_generalised_advantage_golden() -> None:
    # δ = 0, .1, .1, .2, .1; λ = .5: .1, .2 + .05 = .25, .1 + .125 = .225, .2125, .10625
    advantage, target = generalised_advantage(REWARD, VALUE, EVERY, ENDED, trace=0.5)
    torch.testing.assert_close(advantage, torch.tensor([[0.10625, 0.2125, 0.225, 0.25, 0.1]]))
    torch.testing.assert_close(target, advantage + VALUE)


def test_with_a_full_trace_it_is_the_return_less_the_value() -> None:
    advantage, target = generalised_advantage(REWARD, VALUE, EVERY, ENDED)
    torch.testing.assert_close(advantage, torch.tensor([[0.5, 0.5, 0.4, 0.3, 0.1]]))
    torch.testing.assert_close(target, torch.ones(1, 5))


def test_a_truncated_row_bootstraps_from_its_last_value_and_a_terminated_one_does_not() -> None:
    reward, value = torch.zeros(2, 2), torch.tensor([[0.5, 0.5], [0.5, 0.5]])
    advantage, _ = generalised_advantage(
        reward, value, torch.ones(2, 2).bool(), torch.tensor([0.8, 0.0]), discount=0.5, trace=0.0
    )
    # .5·.5 - .5 = -.25; .5·.8 - .5 = -.1 | -.25; -.5
    torch.testing.assert_close(advantage, torch.tensor([[-0.25, -0.1], [-0.25, -0.5]]))


@pytest.mark.parametrize("discount", [0.0, 0.9, 1.0])
@pytest.mark.parametrize("trace", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("noise", [100.0, math.nan])
def test_observation_tokens_are_skipped(discount: float, trace: float, noise: float) -> None:
    kept = torch.tensor([1, 0, 0, 1, 1, 0, 1, 0, 1]).bool()[None]
    reward, value = torch.full((1, 9), noise), torch.full((1, 9), noise)
    reward[kept], value[kept] = REWARD[0], VALUE[0]
    long = generalised_advantage(reward, value, kept, ENDED, discount=discount, trace=trace)
    short = generalised_advantage(REWARD, VALUE, EVERY, ENDED, discount=discount, trace=trace)
    for padded, compact in zip(long, short, strict=True):
        assert torch.equal(padded[kept], compact[0])
        assert (padded[~kept] == 0).all()


def test_the_trace_may_differ_by_row() -> None:
    two = generalised_advantage(
        REWARD.repeat(2, 1),
        VALUE.repeat(2, 1),
        EVERY.repeat(2, 1),
        torch.zeros(2),
        trace=torch.tensor([0.5, 1.0]),
    )[0]
    for row, trace in enumerate((0.5, 1.0)):
        one = generalised_advantage(REWARD, VALUE, EVERY, ENDED, trace=trace)[0]
        assert torch.equal(two[row], one[0])


def test_length_adaptive_trace_golden() -> None:
    # 1 - 1/(.4 L): 3 -> .1667, 5 -> .5, 10 -> .75, 100 -> .975; 1 and 2 would be negative
    lengths = torch.tensor([1, 2, 3, 5, 10, 100])
    mask = torch.arange(100)[None, :] < lengths[:, None]
    expected = torch.tensor([0.0, 0.0, 1 / 6, 0.5, 0.75, 0.975])
    torch.testing.assert_close(length_adaptive_trace(mask, 0.4), expected)


def test_an_alpha_that_is_not_positive_is_refused() -> None:
    with pytest.raises(ValueError, match="must be > 0, got 0"):
        length_adaptive_trace(EVERY, 0.0)


def test_turn_rewards_stand_on_the_last_action_token_and_none_is_lost() -> None:
    mask = torch.tensor([[[True, True, False], [True, True, True]]])
    reward = torch.tensor([[0.25, 0.5]])
    tokens = last_place_reward(reward, mask)
    assert tokens.tolist() == [[[0.0, 0.25, 0.0], [0.0, 0.0, 0.5]]]
    assert torch.equal(tokens.sum(dim=-1), reward)
