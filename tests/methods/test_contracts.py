"""What must hold for every method; a new one in `METHODS` joins by itself.

A method that cannot hold something says so in `CLAIMS`, and what it does not claim must fail.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional
from worked import EQUAL_VALUES, fixed_groups, group_of, waves, worthless

from made import small_policy
from rewardswap.algorithm import Algorithm
from rewardswap.methods import METHODS
from rewardswap.methods.base import Method
from rewardswap.models.batching import Batch, TokenScores, collate, uncollate
from rewardswap.seams import TokenRatios
from rewardswap.types import Group, Trajectory


@dataclass(frozen=True)
class Claims:
    """What a method promises beyond what all do."""

    shift: Literal["group", "batch"] | None = "group"
    """A constant may be added to all returns of one group, or of all groups."""
    scale: Literal["invariant", "linear"] | None = "invariant"
    """What a factor on all rewards and values does."""
    equal: bool = True
    """Equal returns teach nothing."""
    rounding: bool = True
    """Nor do returns that differ in the last bits of float32."""
    alone: bool = True
    """A group of one has an advantage of 0."""
    by_trajectory: bool = True
    """A return counts once, however many turns it took."""
    loss_gradient: bool = True
    """The gradient is that of the loss; else that of -sg(weight) A log pi."""
    center: Literal["token", "trajectory"] = "token"
    """What pi_old / pi_behavior is taken of."""
    clip: bool = True
    """The bounds around the centre do something."""


GAE = Claims(shift=None, equal=False, rounding=False, alone=False, by_trajectory=False)
CLAIMS: dict[str, Claims] = {
    "dr_grpo": Claims(scale="linear"),
    "rloo": Claims(scale="linear"),
    "opo": Claims(scale="linear"),
    "softmax_grpo": Claims(scale=None),
    "reinforce_plus_plus": Claims(shift="batch", alone=False),
    "gspo": Claims(center="trajectory"),
    "gmpo": Claims(center="trajectory"),
    "cispo": Claims(loss_gradient=False),
    "dppo": Claims(loss_gradient=False, clip=False),
    "sapo": Claims(clip=False),
    "max_rl": Claims(shift=None),
    "gigpo": Claims(shift=None, by_trajectory=False),
    "ppo": GAE,
    "decoupled_ppo": GAE,
    "verl_agent_compat": Claims(scale=None, rounding=False, alone=False, by_trajectory=False),
}
"""By the method's name; what is not here claims what GRPO does."""

VARIANTS: list[tuple[str, dict[str, Any], Claims]] = [
    ("grpo", {"average": "turn", "dual_clip": 3.0, "kl_coefficient": 0.1}, Claims()),
    ("grpo", {"ratio": "turn", "average": "turn", "importance_cap": "truncate"}, Claims()),
    ("grpo", {"clip_window": "logarithmic", "replay_clip_low": 0.1}, Claims()),
    ("grpo", {"importance_cap": "mask", "importance_maximum": 1.3}, Claims()),
    ("dapo", {"mixing": "concatenated", "entropy_coefficient": 0.1}, Claims()),
    ("dppo", {"divergence": "kl", "ratio_maximum": 3.0}, CLAIMS["dppo"]),
    ("gigpo", {"discount": 1.0}, Claims(by_trajectory=False)),
    (
        "gigpo",
        {"discount": 1.0, "normalisation": "mean"},
        Claims(scale="linear", by_trajectory=False),
    ),
    ("gdpo", {"rewards": ("in_force",), "weights": (1.0,)}, Claims()),
    ("ppo", {"discount": 1.0}, replace(GAE, shift="batch", equal=True, rounding=True)),
    (
        "ppo",
        {"discount": 1.0, "credit": "turn"},
        replace(GAE, shift="batch", equal=True, rounding=True),
    ),
    ("ppo", {"trace_alpha": 0.5, "whiten": False}, replace(GAE, scale="linear")),
]


@dataclass(frozen=True)
class Case:
    """A method with its settings, and what it claims."""

    method: Method
    claims: Claims

    @property
    def algorithm(self) -> Algorithm:
        return self.method.algorithm()


def cases() -> list[Any]:
    plain = [(name, {}, CLAIMS.get(name, Claims())) for name in METHODS]
    return [
        pytest.param(
            Case(METHODS[name](**settings), claims),
            id="-".join([name, *(f"{k}={v}" for k, v in settings.items())]),
        )
        for name, settings, claims in [*plain, *VARIANTS]
    ]


every = pytest.mark.parametrize("case", cases())


def flat(advantages: Sequence[Tensor]) -> Tensor:
    return torch.cat([advantage.flatten() for advantage in advantages])


def taken(group: Group, order: Sequence[int]) -> Group:
    """The group with its siblings in another order."""
    return replace(
        group,
        trajectories=tuple(group.trajectories[n] for n in order),
        reward=None if group.reward is None else group.reward[list(order)],
        columns={name: column[list(order)] for name, column in group.columns.items()},
        selected=tuple(group.selected[n] for n in order),
    )


def shifted(group: Group, constant: float) -> Group:
    """The group with more reward for every trajectory's last turn."""
    reward = group.reward_in_force.clone()
    for n, trajectory in enumerate(group.trajectories):
        reward[n, len(trajectory.turns) - 1] += constant
    return group.with_rewards({}, reward)


def scaled(group: Group, factor: float) -> Group:
    """The group with other units of reward and of the critic's values."""
    group = group.with_rewards({}, group.reward_in_force * factor)
    for name in ("value", "bootstrap"):
        group = group.with_column(name, group.columns[name] * factor)
    return group


@every
def test_permuted_siblings_have_permuted_advantages(case: Case) -> None:
    groups = fixed_groups()
    orders = [[2, 0, 1], [3, 1, 0, 2]]
    plain = case.algorithm.advantage(groups)
    found = case.algorithm.advantage([taken(g, o) for g, o in zip(groups, orders, strict=True)])
    for advantage, permuted, order in zip(plain, found, orders, strict=True):
        torch.testing.assert_close(permuted, advantage[order], atol=1e-6, rtol=1e-6)
        assert advantage.any()


@every
def test_advantages_stand_on_turns_that_exist_and_are_finite(case: Case) -> None:
    groups = fixed_groups()
    for group, advantage in zip(groups, case.algorithm.advantage(groups), strict=True):
        mask = group.turn_mask if advantage.dim() == 2 else group.token_mask
        assert advantage.shape == mask.shape
        assert advantage.dtype == torch.float32
        assert torch.isfinite(advantage).all()
        assert not advantage[~mask].any()


@every
def test_a_shift_of_rewards_changes_what_is_claimed(case: Case) -> None:
    groups = fixed_groups()
    plain = flat(case.algorithm.advantage(groups))
    one = flat(case.algorithm.advantage([shifted(groups[0], 2.0), groups[1]]))
    both = flat(case.algorithm.advantage([shifted(group, 2.0) for group in groups]))
    assert torch.allclose(one, plain, atol=2e-5) == (case.claims.shift == "group")
    assert torch.allclose(both, plain, atol=2e-5) == (case.claims.shift is not None)


@every
def test_a_factor_on_rewards_changes_what_is_claimed(case: Case) -> None:
    groups = fixed_groups()
    plain = flat(case.algorithm.advantage(groups))
    found = flat(case.algorithm.advantage([scaled(group, 3.0) for group in groups]))
    assert torch.allclose(found, plain, atol=1e-3) == (case.claims.scale == "invariant")
    assert torch.allclose(found, 3 * plain, atol=1e-5) == (case.claims.scale == "linear")


def of_equal_returns(value: float, count: int, task: str = "a") -> Group:
    rewards = [[0.0, value]] * count
    return worthless(group_of(rewards, task=task, outcomes=[1.0] * count))


@every
@pytest.mark.parametrize("value", EQUAL_VALUES)
def test_equal_returns_have_an_advantage_of_zero(case: Case, value: float) -> None:
    for count in (2, 3, 7):
        (advantage,) = case.algorithm.advantage([of_equal_returns(value, count)])
        assert torch.isfinite(advantage).all()
        assert bool(advantage.any()) != case.claims.equal


@every
def test_returns_that_differ_by_rounding_have_an_advantage_of_zero(case: Case) -> None:
    third = np.float32(1 / 3)
    almost = float(np.nextafter(third, np.float32(1)))
    rewards = [[0.0, float(third)], [0.0, almost], [0.0, float(third)]]
    (advantage,) = case.algorithm.advantage([worthless(group_of(rewards, outcomes=[1.0] * 3))])
    assert bool(advantage.any()) != case.claims.rounding


@every
def test_an_equal_group_beside_another_has_an_advantage_of_zero(case: Case) -> None:
    other = worthless(group_of([[0.0, 1.0], [0.0, 0.0]], task="b"))
    found, informative = case.algorithm.advantage([of_equal_returns(0.7, 3), other])
    assert informative.any()
    if case.claims.equal and case.claims.shift == "group":
        assert found.abs().max() < 1e-6


@every
def test_a_group_of_one_is_finite_and_zero_where_siblings_are_needed(case: Case) -> None:
    alone = worthless(group_of([[0.0, 1.0]]))
    (found,) = case.algorithm.advantage([alone])
    assert torch.isfinite(found).all()
    if case.claims.alone:
        assert not found.any()
    single = worthless(group_of([[1.0]], task="c"))
    pair = worthless(group_of([[0.0, 1.0], [0.0, 0.0]], task="b"))
    beside, _ = case.algorithm.advantage([single, pair])
    assert torch.isfinite(beside).all()
    assert (float(beside.abs().max()) < 1e-6) == case.claims.alone


@every
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_reward_that_is_no_number_is_refused_with_its_task(case: Case, bad: float) -> None:
    good = worthless(group_of([[0.0, 1.0], [0.0, 0.0]]))
    with pytest.raises(ValueError, match="'task with a hole' is not finite"):
        case.algorithm.advantage([good, worthless(holed(bad))])


def holed(bad: float) -> Group:
    return group_of([[0.0, bad], [0.0, 0.0]], task="task with a hole", outcomes=[0.0, 0.0])


@every
def test_a_return_counts_once_however_many_turns_it_took(case: Case) -> None:
    # the failure's four tokens are two turns or four
    other = worthless(group_of([[0.5, 0.5], [0.25]], task="b"))
    found = []
    for turns in (2, 4):
        counts = [[2, 2], [4 // turns] * turns]
        group = worthless(group_of([[0.0, 1.0], [0.0] * turns], tokens=counts))
        found.append(case.algorithm.advantage([group, other])[0])
    if case.claims.by_trajectory:
        torch.testing.assert_close(found[1][:, :2], found[0], atol=1e-6, rtol=1e-6)
        assert (found[1][1] == found[1][1, 0]).all()


def scored_groups() -> list[Group]:
    """`fixed_groups` with log-probs of four policies around the small model's own."""
    groups = fixed_groups()
    whole = [replace(g, selected=(True,) * len(g.trajectories), columns={}) for g in groups]
    batch = collate(whole)
    mask = batch.action_mask
    now = small_policy().score(batch).logprob
    old = now + waves(mask, 0.0, 0.3)
    stored = mask & batch.replayed[:, None]
    columns = {
        "old_logprob": old,
        "behavior_logprob": torch.where(stored, old + waves(mask, 1.0, 0.4), old),
        "reference_logprob": old + waves(mask, 2.0, 0.2),
    }
    for name, values in columns.items():
        parts = uncollate(whole, values)
        groups = [g.with_column(name, part) for g, part in zip(groups, parts, strict=True)]
    return groups


SCORED = scored_groups()


def batch_of(case: Case, groups: Sequence[Group]) -> Batch:
    """The weighed batch of one optimizer step; replay has a quarter of the weight."""
    advantages = case.algorithm.advantage(groups)
    batch = collate(
        [g.with_column("advantage", a) for g, a in zip(groups, advantages, strict=True)]
    )
    return case.algorithm.weigh(batch, 0.25)


def stepped(case: Case, batch: Batch, tokens: int = 10_000) -> tuple[dict[str, float], Tensor]:
    """Metrics and parameters after one step of plain gradient descent."""
    policy = small_policy(
        tokens_per_microbatch=tokens,
        make_optimizer=lambda m: torch.optim.SGD(m.parameters(), lr=1.0),
    )
    before = torch.cat([p.detach().flatten() for p in policy.model.parameters()])
    metrics = policy.step(
        batch,
        case.algorithm.loss,
        whole_trajectories=case.algorithm.whole_trajectories,
        entropy_gradient=case.algorithm.entropy_gradient,
    )
    after = torch.cat([p.detach().flatten() for p in policy.model.parameters()])
    assert not torch.equal(before, after)
    return metrics, after


def assert_same_step(
    found: tuple[dict[str, float], Tensor], expected: tuple[dict[str, float], Tensor]
) -> None:
    assert found[0] == pytest.approx(expected[0], abs=1e-6, rel=1e-5)
    torch.testing.assert_close(found[1], expected[1], atol=1e-6, rtol=0)


def one_row_per_turn(trajectory: Trajectory) -> Trajectory:
    """The same tokens in front of every action, repeated in a row of its own."""
    prefix: list[int] = []
    turns = []
    for turn in trajectory.turns:
        context = np.array([*prefix, *turn.context_ids], dtype=np.int64)
        turns.append(replace(turn, context_ids=context, extends=False))
        prefix = [*context.tolist(), *turn.action_ids.tolist()]
    return replace(trajectory, turns=tuple(turns))


def split(group: Group) -> Group:
    return replace(group, trajectories=tuple(one_row_per_turn(t) for t in group.trajectories))


@every
def test_a_step_is_the_same_whatever_the_row_layout(case: Case) -> None:
    merged, separate = (
        batch_of(case, groups) for groups in (SCORED, [split(group) for group in SCORED])
    )
    assert (len(merged), len(separate)) == (6, 12)
    assert_same_step(stepped(case, separate), stepped(case, merged))


@every
def test_a_step_is_the_same_whatever_the_micro_batches(case: Case) -> None:
    batch = batch_of(case, [split(group) for group in SCORED])
    assert_same_step(stepped(case, batch, tokens=30), stepped(case, batch))


@every
def test_a_step_is_the_same_whatever_the_order_of_siblings(case: Case) -> None:
    orders = [[2, 0, 1], [3, 1, 0, 2]]
    permuted = [taken(group, order) for group, order in zip(SCORED, orders, strict=True)]
    found, expected = (stepped(case, batch_of(case, groups)) for groups in (permuted, SCORED))
    assert_same_step(found, expected)


def moved(batch: Batch, size: float = 0.4) -> Tensor:
    """log-probs of a policy that has moved from pi_old."""
    return batch.column("old_logprob") + waves(batch.action_mask, 3.0, size)


def loss_and_gradient(
    algorithm: Algorithm, batch: Batch, logprob: Tensor
) -> tuple[Tensor, dict[str, float], Tensor]:
    leaf = logprob.clone().requires_grad_()
    entropy = torch.where(batch.action_mask, torch.ones(()), torch.zeros(()))
    value, metrics = algorithm.loss(TokenScores(leaf, entropy), batch)
    value.backward()
    assert leaf.grad is not None
    return value.detach(), metrics, leaf.grad


def padded(batch: Batch, left: int, right: int, junk: float) -> Batch:
    """More places on both sides, with junk at every place that is no action token."""

    def wider(values: Tensor, fill: Any) -> Tensor:
        return functional.pad(values, (left, right), value=fill)

    mask = wider(batch.action_mask, False)
    columns = {
        name: torch.where(mask, wider(column, 0.0), torch.tensor(junk))
        for name, column in batch.columns.items()
    }
    return replace(
        batch,
        tokens=wider(batch.tokens, 0),
        action_mask=mask,
        turn=wider(batch.turn, -1),
        columns=columns,
        weights={},
    )


@every
@pytest.mark.parametrize(
    ("left", "right", "junk"), [(0, 0, 1.0), (0, 5, -1e9), (3, 0, float("nan")), (7, 2, 1.0)]
)
def test_padding_and_what_stands_off_the_mask_change_nothing(
    case: Case, left: int, right: int, junk: float
) -> None:
    batch = batch_of(case, SCORED)
    value, metrics, gradient = loss_and_gradient(case.algorithm, batch, moved(batch))
    wide = case.algorithm.weigh(padded(batch, left, right, junk), 0.25)
    logprob = functional.pad(moved(batch), (left, right))
    dirty = torch.where(wide.action_mask, logprob, torch.tensor(junk))
    found, found_metrics, found_gradient = loss_and_gradient(case.algorithm, wide, dirty)
    torch.testing.assert_close(found, value, atol=1e-6, rtol=1e-6)
    assert found_metrics == pytest.approx(metrics, abs=1e-6, rel=1e-6)
    assert not found_gradient[~wide.action_mask].any()
    torch.testing.assert_close(
        found_gradient[wide.action_mask], gradient[batch.action_mask], atol=1e-7, rtol=1e-6
    )


def in_double(batch: Batch) -> Batch:
    return replace(
        batch,
        columns={name: column.double() for name, column in batch.columns.items()},
        weights={name: weights.double() for name, weights in batch.weights.items()},
    )


@dataclass(frozen=True)
class FixedWeight:
    """A surrogate that reads the ratios of one policy, whatever the log-probs are."""

    surrogate: Any
    ratio: Tensor

    def __call__(self, tokens: TokenRatios) -> Tensor:
        return self.surrogate(replace(tokens, ratio=self.ratio))

    def held(self, tokens: TokenRatios) -> dict[str, Tensor]:
        return {}


def weight_fixed_at(algorithm: Algorithm, batch: Batch, logprob: Tensor) -> Algorithm:
    ratio = (logprob - batch.column("behavior_logprob")).exp()
    ratio = torch.where(batch.action_mask, ratio, torch.ones_like(ratio))
    return replace(algorithm, surrogate=FixedWeight(algorithm.surrogate, ratio))


@every
def test_the_gradient_is_that_of_finite_differences(case: Case) -> None:
    batch = in_double(batch_of(case, [split(group) for group in SCORED]))
    logprob = moved(batch)
    _, _, gradient = loss_and_gradient(case.algorithm, batch, logprob)
    algorithm = case.algorithm
    if not case.claims.loss_gradient:
        algorithm = weight_fixed_at(algorithm, batch, logprob)
    step = 1e-6
    for b, t in torch.nonzero(batch.action_mask).tolist():
        around = []
        for sign in (1, -1):
            there = logprob.clone()
            there[b, t] += sign * step
            around.append(float(loss_and_gradient(algorithm, batch, there)[0]))
        difference = (around[0] - around[1]) / (2 * step)
        assert float(gradient[b, t]) == pytest.approx(difference, abs=1e-7, rel=1e-5)
    assert gradient.any()


@every
def test_on_policy_the_replay_formula_is_the_plain_one_to_the_bit(case: Case) -> None:
    batch = batch_of(case, SCORED)
    batch = batch.with_columns({"behavior_logprob": batch.column("old_logprob")})
    method = replace(case.method, replay_clip_low=None)
    algorithm = method.algorithm()
    found = []
    for replayed in (False, True):
        rows = replace(batch, replayed=torch.full((len(batch),), replayed))
        rows = algorithm.weigh(rows, 0.25)
        found.append(loss_and_gradient(algorithm, rows, moved(batch)))
    assert torch.equal(found[0][0], found[1][0])
    assert torch.equal(found[0][2], found[1][2])
    assert torch.equal(found[0][0], plain_loss(algorithm, method, rows, moved(batch)))


def plain_loss(algorithm: Algorithm, method: Method, batch: Batch, logprob: Tensor) -> Tensor:
    """The loss with r = pi_theta / pi_old and its own window, without any behavior policy."""
    mask = batch.action_mask
    zero = torch.zeros_like(logprob)
    gap = torch.where(mask, logprob - batch.column("old_logprob"), zero)
    gap = algorithm.ratio_level(gap, batch)
    one = torch.ones_like(gap)
    low, high = one - method.clip_low, one + method.clip_high
    if method.clip_window == "logarithmic":
        low, high = (one * torch.tensor(w).exp() for w in (-method.clip_low, method.clip_high))
    tokens = TokenRatios(
        ratio=gap.exp(),
        log_ratio=gap,
        center=one,
        lower=low,
        upper=high,
        advantage=batch.column("advantage"),
        logprob=torch.where(mask, logprob, zero),
        old_logprob=batch.column("old_logprob"),
        mask=mask,
        trajectory=batch.trajectory[:, None].expand(mask.shape),
    )
    value = (algorithm.surrogate(tokens) * batch.weights["policy"]).sum()
    entropy = torch.where(mask, torch.ones(()), torch.zeros(()))
    for term in algorithm.terms:
        part = term(TokenScores(logprob, entropy), batch) * batch.weights[term.name]
        value = value + term.coefficient * part.sum()
    return value


def centers(case: Case, batch: Batch) -> Tensor:
    """pi_old / pi_behavior of every token, or its geometric mean, one trajectory at a time."""
    gap = (batch.column("old_logprob") - batch.column("behavior_logprob")).double()
    center = gap.exp()
    keys = batch.trajectory[:, None].expand(gap.shape)
    if case.method.ratio == "turn":
        keys = keys * 100 + batch.turn
    if case.claims.center == "trajectory" or case.method.ratio == "turn":
        for key in torch.unique(keys[batch.action_mask]):
            places = batch.action_mask & (keys == key)
            center[places] = gap[places].mean().exp()
    limit = case.method.importance_maximum
    if case.method.importance_cap == "truncate":
        center = center.clamp(max=limit)
    if case.method.importance_cap == "mask":
        center[center > limit] = 0.0
    return center


def drifted(case: Case, spread: float) -> Batch:
    """Replayed rows whose pi_old is far from pi_behavior, and fresh ones."""
    batch = batch_of(case, SCORED)
    stored = batch.action_mask & batch.replayed[:, None]
    far = batch.column("old_logprob") + waves(batch.action_mask, 5.0, spread)
    behavior = torch.where(stored, far, batch.column("old_logprob"))
    return batch.with_columns({"behavior_logprob": behavior})


def assert_alive_at_old(case: Case, algorithm: Algorithm, batch: Batch) -> None:
    """Nothing is held at theta_old, and each token's gradient is -c A w."""
    bare = replace(algorithm, terms=())
    _, metrics, gradient = loss_and_gradient(bare, batch, batch.column("old_logprob"))
    for name, value in metrics.items():
        assert value == 0 or not name.endswith(("clip_low_share", "clip_high_share", "clip_share"))
    pull = centers(case, batch) * batch.column("advantage") * batch.weights["policy"]
    expected = torch.where(batch.action_mask, -pull, 0.0).float()
    torch.testing.assert_close(gradient, expected, atol=1e-6, rtol=1e-4)


@every
@pytest.mark.parametrize("spread", [0.3, 1.0])
def test_at_the_old_policy_no_token_is_clipped(case: Case, spread: float) -> None:
    batch = drifted(case, spread)
    assert batch.replayed.any()
    assert_alive_at_old(case, case.algorithm, batch)


@dataclass(frozen=True)
class InvertedClip:
    """A wrong clip: centred at pi_behavior / pi_old."""

    right: Callable[..., Any]

    def __call__(self, center: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        return self.right(1 / center, batch)


@pytest.mark.parametrize("case", [c for c in cases() if c.values[0].claims.clip])
def test_the_inverted_center_does_not_pass_the_test_before(case: Case) -> None:
    batch = drifted(case, 1.0)
    wrong = replace(case.algorithm, clip=InvertedClip(case.algorithm.clip))
    with pytest.raises(AssertionError):
        assert_alive_at_old(case, wrong, batch)


@every
def test_a_step_gives_replayed_rows_their_share(case: Case) -> None:
    batch = batch_of(case, SCORED)
    weights = batch.weights["policy"]
    assert not weights[~batch.action_mask].any()
    if case.method.mixing == "weighted":
        # a quarter over three quarters, whatever both averages sum to
        stored, fresh = weights[batch.replayed], weights[~batch.replayed]
        whole = case.algorithm.weigh(batch.take(torch.nonzero(~batch.replayed)[:, 0]), 0.25)
        unit = float(whole.weights["policy"].sum())
        assert float(fresh.sum()) == pytest.approx(0.75 * unit)
        assert float(stored.sum()) > 0
        if case.method.average != "constant":
            assert unit == pytest.approx(1.0)
            assert float(stored.sum()) == pytest.approx(0.25)
