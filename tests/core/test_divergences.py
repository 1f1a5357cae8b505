import math

import pytest
import torch
from torch import Tensor

from rewardswap.core.divergences import (
    absolute,
    entropy,
    k1,
    k2,
    k3,
    k3_limited,
    penalised_reward,
)

LOGITS = torch.tensor([0.3, -1.2, 0.8, 0.1], dtype=torch.float64)
REFERENCE = torch.tensor([-0.4, 0.5, 0.2, -0.9], dtype=torch.float64).log_softmax(dim=0)


def exact_kl(logits: Tensor) -> Tensor:
    logprob = logits.log_softmax(dim=0)
    return (logprob.exp() * (logprob - REFERENCE)).sum()


def expectation(logits: Tensor, estimator) -> Tensor:
    """Mean of the estimator over all 4 tokens, weighted by π as a sampler would (no gradient)."""
    logprob = logits.log_softmax(dim=0)
    share = logprob.detach().exp()
    return (share * estimator((logprob - REFERENCE)[None])[0]).sum()


def test_values_by_hand() -> None:
    x = torch.tensor([[0.5, -0.5]])
    assert k1(x).tolist() == [[0.5, -0.5]]
    assert absolute(x).tolist() == [[0.5, 0.5]]
    assert k2(x).tolist() == [[0.125, 0.125]]
    # e^-.5 + .5 - 1 = .106531; e^.5 - .5 - 1 = .148721
    torch.testing.assert_close(k3(x), torch.tensor([[0.106531, 0.148721]]), atol=1e-6, rtol=0)


@pytest.mark.parametrize("estimator", [k1, k3])
def test_k1_and_k3_are_unbiased_by_enumeration(estimator) -> None:
    assert expectation(LOGITS, estimator).item() == pytest.approx(exact_kl(LOGITS).item())


def test_k2_is_not_unbiased_in_value() -> None:
    assert expectation(LOGITS, k2).item() != pytest.approx(exact_kl(LOGITS).item(), rel=1e-2)


def finite_difference_of_kl() -> Tensor:
    step = 1e-6
    shifts = step * torch.eye(4, dtype=torch.float64)
    return torch.stack([(exact_kl(LOGITS + s) - exact_kl(LOGITS - s)) / (2 * step) for s in shifts])


def gradient_of(estimator) -> Tensor:
    logits = LOGITS.clone().requires_grad_()
    expectation(logits, estimator).backward()
    assert logits.grad is not None
    return logits.grad


def test_the_expected_gradient_of_k2_is_that_of_the_kl() -> None:
    torch.testing.assert_close(gradient_of(k2), finite_difference_of_kl(), atol=1e-8, rtol=1e-6)


def test_the_expected_gradient_of_k1_is_zero() -> None:
    torch.testing.assert_close(gradient_of(k1), torch.zeros(4).double(), atol=1e-12, rtol=0)


@pytest.mark.parametrize("estimator", [k2, k3])
def test_a_descent_step_pulls_toward_the_reference(estimator) -> None:
    after = LOGITS - 0.05 * gradient_of(estimator)
    assert exact_kl(after) < exact_kl(LOGITS)


@pytest.mark.parametrize("estimator", [k1, k2, k3, absolute])
def test_equal_policies_have_a_divergence_of_exactly_zero(estimator) -> None:
    assert (estimator(torch.zeros(2, 3)) == 0).all()


def test_k3_never_overflows_and_says_where_its_limit_holds() -> None:
    x = torch.tensor([[-1000.0, -3.0, -2.0, 0.0, 5.0, 1000.0]], requires_grad=True)
    value = k3(x)
    value.sum().backward()
    # e^3 - 3 - 1 = 16.1 > 10; e^2 - 2 - 1 = 4.4; e^-5 + 5 - 1 = 4.007; the last is held by 20
    assert value.tolist() == [
        [10.0, 10.0, pytest.approx(4.389056), 0.0, pytest.approx(4.006738), 10.0]
    ]
    assert k3_limited(x).tolist() == [[True, True, False, False, False, True]]
    assert x.grad is not None
    assert (x.grad[k3_limited(x)] == 0).all()


def test_penalised_reward() -> None:
    # 1 - .1·.5 = .95; 0 + .1·2 = .2
    found = penalised_reward(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.5, -2.0]]), 0.1)
    torch.testing.assert_close(found, torch.tensor([[0.95, 0.2]]))


def test_entropy() -> None:
    uniform = torch.zeros(1, 1, 8)
    certain = torch.tensor([[[0.0, 100.0]]])
    assert entropy(uniform).item() == pytest.approx(math.log(8))
    assert entropy(certain).item() == pytest.approx(0, abs=1e-6)
    # p = (.25, .75): .25 ln 4 + .75 ln (4/3) = .562335
    assert entropy(torch.tensor([[[0.0, math.log(3.0)]]])).item() == pytest.approx(0.562335)
