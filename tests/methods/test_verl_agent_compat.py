from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

import pytest
import torch
from torch import Tensor

from made import made_trajectory
from rewardswap.methods import METHODS, compat
from rewardswap.methods.grpo import GRPO
from rewardswap.methods.verl_agent_compat import (
    USED_BY,
    Base,
    MicrobatchMean,
    MicrobatchValueRegression,
    VerlAgentCompat,
)
from rewardswap.models.batching import Batch, TokenScores, collate
from rewardswap.rewards.checked import label
from rewardswap.rewards.outcome import OutcomeReward
from rewardswap.types import Group, Trajectory

BASES: tuple[Base, ...] = get_args(Base)


def episode(
    index: int,
    tokens: Sequence[int],
    *,
    won: bool = False,
    invalid: Sequence[int] = (),
    observations: Sequence[str] | None = None,
    **more: Any,
) -> Trajectory:
    """One turn per number of action tokens; observations are all different if none are given."""
    made = made_trajectory("a", index, [(2, n) for n in tokens], float(won), **more)
    seen = observations or [f"{index} {k}" for k in range(len(tokens))]
    turns = [
        replace(turn, valid=k not in invalid, observation=seen[k])
        for k, turn in enumerate(made.turns)
    ]
    return replace(made, turns=tuple(turns))


def group_of(*trajectories: Trajectory, **more: Any) -> Group:
    return label(Group(trajectories[0].task, trajectories, **more), OutcomeReward())


def at_rows(groups: Sequence[Group], values: Sequence[Tensor]) -> list[float]:
    """Turn after turn; every token of a turn has to have the same."""
    rows: list[float] = []
    for group, value in zip(groups, values, strict=True):
        assert value.shape == group.turn_mask.shape
        assert not value[~group.turn_mask].any()
        rows += value[group.turn_mask].tolist()
    return rows


def advantages(method: VerlAgentCompat, *groups: Group) -> list[float]:
    return at_rows(groups, method.algorithm().advantage(groups))


# A 2-turn success and an 8-turn failure of one group.
UNEVEN = group_of(episode(0, [1] * 2, won=True), episode(1, [1] * 8))


def test_the_baseline_is_the_mean_over_turns() -> None:
    # 10·2/10 = 2, where the mean over trajectories is 5
    method = VerlAgentCompat(normalisation="mean")
    assert advantages(method, UNEVEN) == [8.0] * 2 + [-2.0] * 8
    # rloo: · 10/9
    found = advantages(VerlAgentCompat(base="rloo"), UNEVEN)
    assert found == pytest.approx([80 / 9] * 2 + [-20 / 9] * 8)


def test_the_standard_deviation_is_that_of_turns() -> None:
    # (2·8² + 8·2²) / 9 = 160/9
    std = (160 / 9) ** 0.5
    found = advantages(VerlAgentCompat(), UNEVEN)
    assert found == pytest.approx([8 / std] * 2 + [-2 / std] * 8, rel=1e-5)
    own = GRPO().algorithm().advantage([UNEVEN])[0]
    assert own[:, 0].tolist() == pytest.approx([0.5**0.5, -(0.5**0.5)], rel=1e-5)


def test_a_penalty_is_subtracted_from_its_own_row_and_shifts_the_statistics() -> None:
    group = group_of(episode(0, [1, 2], won=True, invalid=[0]), episode(1, [1, 1]))
    # rows 9.9, 10, 0, 0: mean 4.975
    found = advantages(VerlAgentCompat(normalisation="mean"), group)
    assert found == pytest.approx([4.925, 5.025, -4.975, -4.975])
    free = advantages(VerlAgentCompat(normalisation="mean", invalid_penalty=0.0), group)
    assert free == pytest.approx([5, 5, -5, -5])
    scaled = advantages(VerlAgentCompat(normalisation="mean", outcome_scale=1.0), group)
    assert scaled == pytest.approx([0.9 - 0.475, 0.525, -0.475, -0.475])


# Both start in the same place; the winner's second turn and the loser's are taken in others.
ANCHORED = group_of(
    episode(0, [1, 2], won=True, invalid=[1], observations=["start", "here"]),
    episode(1, [3, 1], observations=["start", "there"]),
)


def test_gigpo_centred() -> None:
    # rows 10, 9.9, 0, 0: mean 4.975; step returns 9.5 and 0 at the start: mean 4.75. The penalty
    # of turn 1 reaches no earlier turn, and a place seen once has no step part.
    method = VerlAgentCompat(base="gigpo", normalisation="mean")
    expected = [5.025 + 4.75, 4.925, -4.975 - 4.75, -4.975]
    assert advantages(method, ANCHORED) == pytest.approx(expected)
    half = replace(method, step_weight=0.5, step_discount=0.5)
    # step returns 5 and 0
    expected = [5.025 + 1.25, 4.925, -4.975 - 1.25, -4.975]
    assert advantages(half, ANCHORED) == pytest.approx(expected)


def test_gigpo_divided_by_the_standard_deviation() -> None:
    episodes = torch.tensor([10, 9.9, 0, 0], dtype=torch.float64)
    z = (episodes - 4.975) / (episodes.std() + 1e-6)
    step = 0.5**0.5  # ± 4.75 / sqrt(2 · 4.75²)
    expected = [z[0] + step, z[1], z[2] - step, z[3]]
    found = advantages(VerlAgentCompat(base="gigpo"), ANCHORED)
    assert found == pytest.approx([float(v) for v in expected], rel=1e-5)


def test_gigpo_may_take_the_environments_states_for_anchors() -> None:
    # the made states are turn numbers: turn 1 is a step group too, 9.9 and 0
    method = VerlAgentCompat(base="gigpo", normalisation="mean", anchor="state")
    expected = [5.025 + 4.75, 4.925 + 4.95, -4.975 - 4.75, -4.975 - 4.95]
    assert advantages(method, ANCHORED) == pytest.approx(expected)


# A turn of 1 token that wins and one of 3 tokens that does not.
TOKENS = group_of(episode(0, [1], won=True), episode(1, [3]))


def test_reinforce_plus_plus_is_whitened_over_tokens() -> None:
    # tokens 10, 0, 0, 0: mean 2.5, variance (7.5² + 3·2.5²)/3 = 25
    found = advantages(VerlAgentCompat(base="reinforce_plus_plus"), TOKENS)
    assert found == pytest.approx([1.5, -0.5])
    # less the group's mean 5 the deviations are the same
    method = VerlAgentCompat(base="reinforce_plus_plus_baseline")
    assert advantages(method, TOKENS) == pytest.approx([1.5, -0.5])


def test_the_whitening_runs_over_all_groups_and_a_single_row_keeps_its_score() -> None:
    even = group_of(episode(0, [1], won=True), episode(1, [1]))
    alone = group_of(episode(2, [2]))
    # 5, -5, and two tokens of 0: variance 50/3
    method = VerlAgentCompat(base="reinforce_plus_plus_baseline")
    expected = [5 / (50 / 3) ** 0.5, -5 / (50 / 3) ** 0.5, 0]
    assert advantages(method, even, alone) == pytest.approx(expected)


def valued(group: Group, values: Sequence[Sequence[Sequence[float]]], off: float = 0.0) -> Group:
    """The group with a critic's values, and `off` where there is no token."""
    column = torch.full(group.token_mask.shape, off)
    for n, turns in enumerate(values):
        for k, tokens in enumerate(turns):
            column[n, k, : len(tokens)] = torch.tensor(tokens)
    bootstrap = torch.full(group.turn_mask.shape, 7.0)
    return group.with_column("value", column).with_column("bootstrap", bootstrap)


PPO = VerlAgentCompat(base="ppo").algorithm()


def test_ppo_stays_inside_a_turn() -> None:
    group = group_of(episode(0, [1, 1], won=True, invalid=[1]), episode(1, [2]))
    group = valued(group, [[[4.0], [6.9]], [[1.0, 2.0]]])
    # s - V: 6, 3, -1, -2, whatever stands in the next turn or behind the end
    raw = torch.tensor([6.0, 3.0, -1.0, -2.0])
    white = (raw - 1.5) / raw.std()
    found = PPO.advantage([group])[0]
    assert torch.allclose(found[group.token_mask], white)
    assert not found[~group.token_mask].any()
    assert PPO.critic is not None
    target = PPO.critic.target([group])[0]
    assert torch.allclose(target[group.token_mask], torch.tensor([10, 9.9, 0, 0]))


def test_what_stands_off_the_mask_reaches_no_advantage() -> None:
    values = [[[4.0], [6.9]], [[1.0, 2.0, 3.0]]]
    bare = group_of(episode(0, [1, 1], won=True, invalid=[1]), episode(1, [3]))
    clean, dirty = valued(bare, values), valued(bare, values, off=99.0)
    assert torch.equal(PPO.advantage([clean])[0], PPO.advantage([dirty])[0])
    assert PPO.critic is not None
    assert torch.equal(PPO.critic.target([clean])[0], PPO.critic.target([dirty])[0])
    wider = group_of(episode(0, [5, 1, 1]), episode(1, [1]))
    # next to a group of other lengths every row keeps its score
    grpo = VerlAgentCompat().algorithm().advantage
    assert torch.equal(grpo([bare])[0], grpo([bare, wider])[0])


def collated(groups: Sequence[Group], found: Sequence[Tensor]) -> Batch:
    """Rows of tokens with these advantages."""
    pairs = zip(groups, found, strict=True)
    return collate([replace(group, columns={"advantage": a}) for group, a in pairs])


def random_groups(replayed: bool = False) -> list[Group]:
    draw = torch.Generator().manual_seed(3)

    def number(limit: int) -> int:
        return int(torch.randint(1, limit, (), generator=draw))

    groups = []
    for _ in range(3):
        members = []
        for n in range(4):
            lengths = [number(4) for _ in range(number(6))]
            seen = [f"place {number(4)}" for _ in lengths]
            bad = [k for k in range(len(lengths)) if number(4) == 1]
            won = number(3) == 1
            members.append(episode(n, lengths, won=won, invalid=bad, observations=seen))
        groups.append(group_of(*members, replayed=replayed))
    return [valued(g, torch.randn(g.token_mask.shape, generator=draw).tolist()) for g in groups]


def plain_rows(groups: Sequence[Group]) -> dict[str, Tensor]:
    """The rows of groups written out one by one, as verl-agent would have them."""
    width = max(group.token_count for group in groups)
    rows: dict[str, list[Any]] = {name: [] for name in ("s", "r", "v", "t", "g", "o", "V", "m")}
    names: dict[tuple[int, str], int] = {}
    for g, group in enumerate(groups):
        for n, trajectory in enumerate(group.trajectories):
            for k, turn in enumerate(trajectory.turns):
                length = len(turn.action_ids)
                last = k == len(trajectory.turns) - 1
                rows["m"].append([t < length for t in range(width)])
                rows["s"].append(
                    [10 * trajectory.outcome * (t == length - 1) for t in range(width)]
                )
                rows["r"].append(10 * trajectory.outcome * last)
                rows["v"].append(turn.valid)
                rows["t"].append(100 * g + n)
                rows["g"].append(g)
                rows["o"].append(names.setdefault((g, turn.observation), len(names)))
                own = group.columns["value"][n, k].tolist()
                rows["V"].append([own[t] if t < length else 0.0 for t in range(width)])
    return {name: torch.tensor(values) for name, values in rows.items()}


def expected_rows(base: Base, groups: Sequence[Group], *, divide: bool) -> Tensor:
    """The functions of `compat`, whose numbers are recorded ones, on these rows: [R T]."""
    x = plain_rows(groups)
    mask, every = x["m"], torch.ones(len(x["g"])).bool()
    returns = compat.row_returns(x["r"], x["t"], 0.95)
    score, returns = compat.penalise_invalid_actions(x["s"], returns, mask, x["v"])
    total = score.sum(dim=1)
    if base == "ppo":
        found, _ = compat.whitened_turn_advantage(score, x["V"], mask, discount=1.0, trace=1.0)
        return torch.where(mask, found, 0.0)
    if base == "reinforce_plus_plus":
        return compat.whitened_token_returns(score, mask, 1.0)[0]
    if base == "reinforce_plus_plus_baseline":
        return compat.whitened_row_scores(total, x["g"], mask)
    if base == "rloo":
        row = compat.row_leave_one_out(total, x["g"])
    else:
        row = compat.row_advantage(total, x["g"], every, divide_by_std=divide)
    if base == "gigpo":
        row = compat.gigpo_row_advantage(
            row, returns, x["o"], step_weight=1.0, divide_by_std=divide
        )
    return torch.where(mask, row[:, None], 0.0)


CENTRED = [(base, "mean") for base in USED_BY["normalisation"]]


@pytest.mark.parametrize(("base", "normalisation"), [(base, "std") for base in BASES] + CENTRED)
def test_advantages_are_those_of_the_recorded_functions(base: Base, normalisation: Any) -> None:
    groups = random_groups()
    method = VerlAgentCompat(base=base, normalisation=normalisation)
    algorithm = method.algorithm()
    # collated rows of tokens, in order, hold the same numbers as verl-agent's rows
    batch = collated(groups, algorithm.advantage(groups))
    expected = expected_rows(base, groups, divide=normalisation == "std")
    mask = plain_rows(groups)["m"]
    assert torch.allclose(batch.column("advantage")[batch.action_mask], expected[mask], atol=1e-4)


@pytest.mark.parametrize("base", BASES)
def test_siblings_that_replay_left_out_count_in_their_group_only(base: Base) -> None:
    algorithm = VerlAgentCompat(base=base).algorithm()
    groups = random_groups(replayed=True)
    part = [replace(group, selected=(True, False, True, False)) for group in groups]
    whole, found = algorithm.advantage(groups), algorithm.advantage(part)
    if base in ("grpo", "gigpo", "rloo"):
        assert all(torch.equal(a, b) for a, b in zip(whole, found, strict=True))
        return
    # whitened over what is trained on: mean 0 and std 1 over its tokens, 0 elsewhere
    batch = collated(part, found)
    trained = batch.column("advantage")[batch.action_mask]
    assert float(trained.mean()) == pytest.approx(0, abs=1e-5)
    assert float(trained.std()) == pytest.approx(1, rel=1e-4)
    assert not any(advantage[[1, 3]].any() for advantage in found)


def annotated(groups: Sequence[Group], method: VerlAgentCompat, moved: float = 0.0) -> Batch:
    """The batch as a loss reads it; replayed rows were sampled `moved` nats away."""
    found = method.algorithm().advantage(groups)
    batch = collated(groups, found)
    old = torch.where(batch.action_mask, -1.0, 0.0)
    away = torch.randn(old.shape, generator=torch.Generator().manual_seed(0)) * moved
    behavior = torch.where(batch.action_mask & batch.replayed[:, None], old + away, old)
    columns = {"old_logprob": old, "behavior_logprob": behavior, "reference_logprob": old - 0.5}
    return batch.with_columns(columns)


def test_the_loss_is_clipped_twice_and_has_both_terms() -> None:
    method = VerlAgentCompat(normalisation="mean")
    batch = annotated([TOKENS], method)
    # scores 10, 0 of one row each: A = 5, -5. Ratio 5 at every token: clipped at 1.2 for A > 0,
    # held at 3 for A < 0: -6, and 15 at three tokens
    algorithm = method.algorithm()
    batch = algorithm.weigh(batch, 0.0)
    scores = TokenScores(
        logprob=torch.where(batch.action_mask, -1 + torch.tensor(5.0).log(), float("nan")),
        entropy=torch.where(batch.action_mask, 2.0, float("nan")),
    )
    loss, metrics = algorithm.loss(scores, batch)
    assert metrics["policy_loss"] == pytest.approx((-6 + 3 * 15) / 4, rel=1e-5)
    assert metrics["dual_clip_share"] == pytest.approx(0.75)
    assert metrics["clip_high_share"] == pytest.approx(0.25)
    gap = torch.tensor(5.0).log() + 0.5
    k3 = float((-gap).exp() + gap - 1)
    assert metrics["kl_reference"] == pytest.approx(k3, rel=1e-5)
    assert float(loss) == pytest.approx(39 / 4 + 0.01 * k3 - 0.001 * 2, rel=1e-5)


LENGTHS = [[1, 2], [3, 1, 5]]


@pytest.mark.parametrize("fresh_rows", [[0], [0, 1, 2]])
def test_tokens_are_averaged_in_chunks_of_turns(fresh_rows: Sequence[int]) -> None:
    members = [episode(n, tokens, fresh_rows=fresh_rows) for n, tokens in enumerate(LENGTHS)]
    batch = collate([Group(members[0].task, tuple(members))])
    assert len(batch) == (2 if fresh_rows == [0] else 5)
    weights = MicrobatchMean(2)(batch.action_mask, batch)
    # chunks (1, 2), (3, 1), (5) of 3, 4 and 5 tokens, a third each, in whatever rows of ours
    expected = [1 / 9] * 3 + [1 / 12] * 4 + [1 / 15] * 5
    assert weights[batch.action_mask].tolist() == pytest.approx(expected)
    assert not weights[~batch.action_mask].any()
    # one chunk for all is the plain token mean, one per turn the mean over turns
    assert MicrobatchMean(5)(batch.action_mask, batch)[batch.action_mask].tolist() == pytest.approx(
        [1 / 12] * 12
    )
    single = MicrobatchMean(1)(batch.action_mask, batch)[batch.action_mask]
    lengths = [n for tokens in LENGTHS for n in tokens]
    assert single.tolist() == pytest.approx([1 / (5 * n) for n in lengths for _ in range(n)])


def test_an_empty_mask_is_refused() -> None:
    batch = collate([TOKENS])
    with pytest.raises(ValueError, match="no token is trained on"):
        MicrobatchMean()(torch.zeros_like(batch.action_mask), batch)


@pytest.mark.parametrize("base", BASES)
def test_replayed_rows_are_weighed_apart_and_none_is_clipped_at_the_start(base: Base) -> None:
    method = VerlAgentCompat(base=base, rows_per_microbatch=3)
    algorithm = method.algorithm()
    fresh, replayed = random_groups(), random_groups(replayed=True)
    chosen = [replace(group, selected=(True, True, False, False)) for group in replayed]
    batch = algorithm.weigh(annotated([*fresh, *chosen], method, moved=1.0), 0.25)
    weights = batch.weights["policy"]
    assert float(weights[batch.replayed].sum()) == pytest.approx(0.25)
    assert float(weights[~batch.replayed].sum()) == pytest.approx(0.75)
    logprob = batch.column("old_logprob").clone().requires_grad_()
    loss, metrics = algorithm.loss(TokenScores(logprob, torch.zeros_like(logprob)), batch)
    assert metrics["clip_low_share"] == metrics["clip_high_share"] == 0
    # q of replayed rows is e^gap up to rounding, so their gradients are alive
    loss.backward()
    assert logprob.grad is not None
    alive = logprob.grad[batch.action_mask & (batch.column("advantage") != 0)]
    assert alive.abs().min() > 0
    assert not logprob.grad[~batch.action_mask].any()


def test_the_critic_learns_from_fresh_rows_in_chunks() -> None:
    critic = VerlAgentCompat(base="ppo", rows_per_microbatch=2).algorithm().critic
    assert isinstance(critic, MicrobatchValueRegression)
    assert (critic.clip, critic.learning_rate, critic.warmup_updates) == (0.5, None, 0)
    fresh = Group(TOKENS.task, tuple(episode(n, tokens) for n, tokens in enumerate(LENGTHS)))
    batch = critic.weigh(collate([fresh, replace(fresh, replayed=True)]))
    assert not batch.replayed.any()
    expected = [1 / 9] * 3 + [1 / 12] * 4 + [1 / 15] * 5
    assert batch.weights["value"][batch.action_mask].tolist() == pytest.approx(expected)


def test_dynamic_sampling_leaves_out_groups_of_equal_returns() -> None:
    plain = VerlAgentCompat().algorithm()
    dapo = VerlAgentCompat(clip_high=0.28, collections=10).algorithm()
    assert (plain.collections, dapo.collections) == (1, 10)
    # the penalty of an invalid action makes no difference
    equal = group_of(episode(0, [1], invalid=[0]), episode(1, [2]))
    assert plain.keep(equal)
    assert not dapo.keep(equal)
    assert dapo.keep(UNEVEN)


def test_the_defaults_are_verl_agents() -> None:
    algorithm = METHODS["verl_agent_compat"]().algorithm()
    assert {term.name: term.coefficient for term in algorithm.terms} == {
        "kl_reference": 0.01,
        "negative_entropy": 0.001,
    }
    assert algorithm.reduction == MicrobatchMean(32)
    assert algorithm.critic is None


def test_only_bases_that_compare_siblings_need_them() -> None:
    needed = {base for base in BASES if VerlAgentCompat(base=base).needs_siblings}
    assert needed == {"grpo", "gigpo", "rloo", "reinforce_plus_plus_baseline"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"step_weight": 2.0}, "step_weight does nothing with base grpo"),
        ({"base": "rloo", "normalisation": "mean"}, "normalisation does nothing with base rloo"),
        ({"base": "ppo", "anchor": "state"}, "anchor does nothing with base ppo"),
        ({"average": "turn"}, "average does nothing in VerlAgentCompat"),
        ({"kl_placement": "reward"}, "kl_placement does nothing in VerlAgentCompat"),
        ({"outcome_scale": 0.0}, "outcome_scale must be above 0"),
        ({"invalid_penalty": -0.1}, "invalid_penalty must be at least 0"),
        ({"rows_per_microbatch": 0}, "rows_per_microbatch must be at least 1"),
        ({"collections": 0}, "collections must be at least 1"),
        ({"base": "gigpo", "step_discount": 1.5}, r"step_discount must be in \[0, 1\]"),
        ({"base": "gigpo", "similarity": 1.0}, r"similarity must be inside \(0, 1\)"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        VerlAgentCompat(**settings)
