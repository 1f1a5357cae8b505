"""Fault 23, through a policy: the divergence term against all tokens that could have been said."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from made import VOCABULARY, made_group, made_trajectory, small_llama, small_policy
from rewardswap.choices import ReferenceDivergence
from rewardswap.models.batching import Batch, TokenScores, collate
from rewardswap.models.learner import Metrics
from rewardswap.models.policy import Policy
from training import parameters

CONTEXT = np.array([5, 9, 12])


def start_model() -> Any:
    """A reference near enough that no token's k3 is held at its limit."""
    model = small_llama()
    stream = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn(parameter.shape, generator=stream)
    return model


def distribution(model: Any) -> Tensor:
    """log-probs of the token behind the context, by a plain forward pass."""
    logits = model(torch.from_numpy(CONTEXT)[None]).logits[0, -1]
    return torch.log_softmax(logits, dim=-1)


def divergence(model: Any, reference: Any) -> Tensor:
    """KL(model || reference) of that token, in nats."""
    ours = distribution(model)
    return (ours.exp() * (ours - distribution(reference).detach())).sum()


def every_token(policy: Policy, reference: Policy) -> Batch:
    """A row for each token that can be said, weighing what the policy gives it."""
    base = made_trajectory(lengths=((3, 1),))
    members = tuple(
        replace(
            base,
            index=v,
            turns=(replace(base.turns[0], context_ids=CONTEXT, action_ids=np.array([v])),),
        )
        for v in range(VOCABULARY)
    )
    batch = collate([replace(made_group(), trajectories=members, selected=())])
    shares = policy.score(batch).logprob.exp() * batch.action_mask
    assert float(shares.sum()) == pytest.approx(1.0, abs=1e-5)
    columns = {"reference_logprob": reference.score(batch).logprob}
    return batch.with_columns(columns).with_weights({"kl_reference": shares})


def step(estimator: Any, rate: float) -> tuple[Policy, float]:
    """The policy after a step down its divergence, and what it said the divergence was."""
    policy = small_policy(
        make_optimizer=lambda m: torch.optim.SGD(m.parameters(), lr=rate), gradient_clip=1e9
    )
    reference = Policy(start_model(), make_optimizer=policy.make_optimizer)
    term = ReferenceDivergence(1.0, estimator)

    def loss(scores: TokenScores, batch: Batch) -> tuple[Tensor, Metrics]:
        value = (term(scores, batch) * batch.weights["kl_reference"]).sum()
        return value, {}

    return policy, policy.step(every_token(policy, reference), loss)["loss"]


def test_the_mean_of_k3_is_the_divergence_and_not_that_of_the_reference() -> None:
    _, said = step("k3", 0.1)
    exact = divergence(small_llama(), start_model()).item()
    other = divergence(start_model(), small_llama()).item()
    assert said == pytest.approx(exact, abs=1e-4)
    assert abs(said - other) > 1e-3


def test_the_step_of_k2_is_the_gradient_of_the_divergence() -> None:
    policy, _ = step("k2", 1.0)
    model = small_llama()
    divergence(model, start_model()).backward()
    gradient = torch.cat([p.grad.flatten() for p in model.parameters()])
    moved = parameters(policy) - parameters(small_policy())
    torch.testing.assert_close(moved, -gradient, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("estimator", ["k2", "k3"])
def test_a_step_pulls_toward_the_reference(estimator: Any) -> None:
    policy, _ = step(estimator, 0.01)
    reference = start_model()
    assert divergence(policy.model, reference) < divergence(small_llama(), reference) - 1e-3
