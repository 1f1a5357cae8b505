"""The loss that the seams make: hand-worked numbers and what must not change it."""

import math
from dataclasses import replace

import pytest
import torch

from made import made_group, small_policy
from rewardswap.algorithm import Algorithm, effective_sample_size
from rewardswap.choices import CenteredClip, token_mean, trajectory_mean
from rewardswap.methods.grpo import GRPO
from rewardswap.models.batching import Batch, TokenScores, collate

HALF, TENTH = math.log(0.5), math.log(0.1)


def two_token_batch(
    old: list[float], behavior: list[float], advantage: list[float], replayed: bool = False
) -> Batch:
    """One row: a context token, then the action tokens."""
    count = len(old)
    mask = torch.tensor([[False] + [True] * count])

    def column(values: list[float]) -> torch.Tensor:
        return torch.tensor([[0.0, *values]])

    return Batch(
        tokens=torch.zeros(1, count + 1, dtype=torch.int64),
        lengths=torch.tensor([count + 1]),
        action_mask=mask,
        turn=torch.where(mask, 0, -1),
        trajectory=torch.tensor([0]),
        group=torch.tensor([0]),
        replayed=torch.tensor([replayed]),
        columns={
            "old_logprob": column(old),
            "behavior_logprob": column(behavior),
            "advantage": column(advantage),
        },
    )


def scores_of(values: list[float]) -> TokenScores:
    logprob = torch.tensor([[0.0, *values]], requires_grad=True)
    return TokenScores(logprob, torch.zeros_like(logprob))


def test_grpo_advantages_by_hand() -> None:
    group = made_group(outcomes=(1.0, 0.0, 0.0, 1.0))
    group = group.with_rewards({}, torch.zeros(4, 3))
    reward = torch.zeros(4, 3)
    reward[0, 0], reward[3, 1] = 1.0, 1.0
    (advantage,) = GRPO().algorithm().advantage([group.with_rewards({}, reward)])
    # mean .5, unbiased standard deviation sqrt(4 x .25 / 3) = .57735: +-.5 / .57735 = +-.86603
    assert advantage[:, 0].tolist() == pytest.approx(
        [0.86602, -0.86602, -0.86602, 0.86602], abs=1e-4
    )
    assert torch.equal(advantage != 0, group.turn_mask)


def test_a_long_trajectory_does_not_weigh_more_in_the_baseline() -> None:
    # fault 13: a short success and a long failure have baseline .5, not a row-weighted one
    group = made_group(outcomes=(1.0, 0.0))
    reward = torch.tensor([[0.0, 1.0], [0.0, 0.0]])
    (advantage,) = GRPO().algorithm().advantage([group.with_rewards({}, reward)])
    assert float(advantage[0, 0]) == pytest.approx(-float(advantage[1, 0]))


def test_replayed_loss_by_hand() -> None:
    # pi_B = .5 and .5, pi_old = .25 and .5, pi_theta = .2 and .8 of the two tokens
    batch = two_token_batch([2 * HALF, HALF], [HALF, HALF], [1.0, 1.0], replayed=True)
    batch = GRPO().algorithm().weigh(batch, 1 / 8)
    value, metrics = GRPO().algorithm().loss(scores_of([math.log(0.2), math.log(0.8)]), batch)
    # token 1: q = .4, c = .5, bounds .3 .. .7: loss -.4
    # token 2: q = 1.6, c = 1, bounds .8 .. 1.2, clipped above: loss -1.2
    assert float(value.detach()) == pytest.approx(-(0.4 + 1.2) / 2)
    assert metrics["clip_high_share"] == pytest.approx(0.5)
    assert metrics["clip_low_share"] == 0


def test_at_theta_old_no_replayed_token_is_clipped_and_with_the_inverse_centre_many_are() -> None:
    stream = torch.Generator().manual_seed(0)
    old = (-torch.rand(200, generator=stream)).tolist()
    gap = torch.randn(200, generator=stream) * 0.3
    behavior = (torch.tensor(old) - gap).tolist()
    signs = torch.where(torch.rand(200, generator=stream) > 0.5, 1.0, -1.0).tolist()
    batch = GRPO().algorithm().weigh(two_token_batch(old, behavior, signs, replayed=True), 1 / 8)
    _, metrics = GRPO().algorithm().loss(scores_of(old), batch)
    assert metrics["clip_low_share"] == metrics["clip_high_share"] == 0

    def inverted(center: torch.Tensor, part: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        return CenteredClip()(1 / center, part)

    _, wrong = replace(GRPO().algorithm(), clip=inverted).loss(scores_of(old), batch)
    # spec: 37 % of the gradients are dead at a log-prob gap of standard deviation .3
    assert 0.25 < wrong["clip_low_share"] + wrong["clip_high_share"] < 0.5


def test_on_policy_the_replayed_formula_is_the_plain_one_to_the_bit() -> None:
    values, advantage = [-1.2, -0.3, -2.0], [1.0, -0.5, 0.7]
    old = [-1.0, -0.4, -1.5]
    results = []
    for replayed in (False, True):
        batch = GRPO().algorithm().weigh(two_token_batch(old, old, advantage, replayed), 1 / 8)
        scores = scores_of(values)
        value, _ = GRPO().algorithm().loss(scores, batch)
        value.backward()
        results.append((value.detach(), scores.logprob.grad))
    assert torch.equal(results[0][0], results[1][0])
    assert torch.equal(results[0][1], results[1][1])


@pytest.mark.parametrize("reduction", [token_mean, trajectory_mean])
def test_weights_of_fresh_and_replayed_rows(reduction: object) -> None:
    groups = [made_group("a", (0.0, 1.0)), replace(made_group("b", (1.0, 0.0)), replayed=True)]
    algorithm = Algorithm(advantage=GRPO().algorithm().advantage, reduction=reduction)
    weights = algorithm.weigh(collate(groups), 0.25).weights["policy"]
    stored = torch.tensor([False, False, True, True])
    assert float(weights[~stored].sum()) == pytest.approx(0.75)
    assert float(weights[stored].sum()) == pytest.approx(0.25)
    alone = algorithm.weigh(collate(groups[:1]), 0.25).weights["policy"]
    assert float(alone.sum()) == pytest.approx(1.0)


def test_the_loss_does_not_read_masked_places() -> None:
    batch = two_token_batch([-1.0, -0.4], [-1.0, -0.5], [1.0, -0.5], replayed=True)
    algorithm = GRPO(kl_coefficient=0.1).algorithm()
    columns = {**batch.columns, "reference_logprob": torch.tensor([[0.0, -1.1, -0.3]])}
    results = []
    for garbage in (0.0, float("nan"), 1.0, -1e9):
        dirty = {
            n: c.clone().index_fill_(1, torch.tensor([0]), garbage) for n, c in columns.items()
        }
        scores = scores_of([-0.9, -0.7])
        values = scores.logprob.detach().clone()
        values[0, 0] = garbage
        scores = TokenScores(values.requires_grad_(), torch.zeros_like(values))
        value, _ = algorithm.loss(scores, algorithm.weigh(replace(batch, columns=dirty), 0.5))
        value.backward()
        results.append((value.detach(), scores.logprob.grad[0, 1:]))
        assert float(scores.logprob.grad[0, 0]) == 0
    for value, gradient in results[1:]:
        assert torch.equal(value, results[0][0])
        assert torch.equal(gradient, results[0][1])


def test_the_gradient_of_the_reference_term_pulls_towards_the_reference() -> None:
    batch = two_token_batch([-1.0], [-1.0], [0.0])
    columns = {**batch.columns, "reference_logprob": torch.tensor([[0.0, -0.2]])}
    algorithm = GRPO(kl_coefficient=0.1).algorithm()
    scores = scores_of([-1.0])
    value, _ = algorithm.loss(scores, algorithm.weigh(replace(batch, columns=columns), 0.0))
    value.backward()
    # the reference gives the token more: descent must raise its log-prob
    assert float(scores.logprob.grad[0, 1]) < 0


def test_effective_sample_size_by_hand() -> None:
    # weights 1, 1, 2: (1 + 1 + 2)^2 / (3 (1 + 1 + 4)) = 16 / 18
    batch = two_token_batch([-1.0, -1.0, -1.0], [-1.0, -1.0, -1.0 - math.log(2)], [0, 0, 0], True)
    metrics = effective_sample_size(batch, batch.replayed)
    assert metrics["effective_sample_size"] == pytest.approx(16 / 18)
    assert metrics["effective_sample_size_trajectory"] == pytest.approx(1.0)
    assert metrics["importance_second_moment"] == pytest.approx(2.0)
    fresh = two_token_batch([-1.0], [-1.0], [0.0])
    assert effective_sample_size(fresh, fresh.replayed) == {}
    assert effective_sample_size(fresh, ~fresh.replayed)["importance_mean"] == 1.0


def test_row_layout_changes_neither_loss_nor_gradient() -> None:
    """One merged row or one row per turn: the same context in front of every action."""
    import numpy as np

    from rewardswap.types import Group

    merged = made_group("a", (0.0, 1.0))
    split = []
    for trajectory in merged.trajectories:
        prefix: list[int] = []
        turns = []
        for turn in trajectory.turns:
            context = np.array([*prefix, *turn.context_ids], dtype=np.int64)
            turns.append(replace(turn, context_ids=context, extends=False))
            prefix = [*context.tolist(), *turn.action_ids.tolist()]
        split.append(replace(trajectory, turns=tuple(turns)))
    gradients = []
    for group in (merged, Group(merged.task, tuple(split))):
        zeros = torch.zeros(2, group.turn_count, group.token_count)
        advantage = torch.tensor([[1.0], [-0.7]]) * group.turn_mask
        for name in ("old_logprob", "behavior_logprob"):
            group = group.with_column(name, zeros - 3.0 * group.token_mask)
        batch = collate([group.with_column("advantage", advantage)])
        policy = small_policy()
        algorithm = replace(GRPO().algorithm(), reduction=trajectory_mean)
        metrics = policy.step(algorithm.weigh(batch, 0.0), algorithm.loss)
        after = torch.cat([p.detach().flatten() for p in policy.model.parameters()])
        gradients.append((metrics["loss"], after))
    assert gradients[0][0] == pytest.approx(gradients[1][0], abs=1e-6)
    torch.testing.assert_close(gradients[0][1], gradients[1][1], atol=2e-6, rtol=0)
