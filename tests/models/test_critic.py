"""What a critic says, what it learns from, and how it is branched and restored."""

from dataclasses import replace

import pytest
import torch

from made import made_group, made_trajectory, small_llama, small_policy
from rewardswap.choices import ValueRegression
from rewardswap.methods.ppo import GeneralisedAdvantage
from rewardswap.models.batching import Batch, collate, rows_of
from rewardswap.models.critic import Critic, ValueModel
from rewardswap.rewards.checked import label
from rewardswap.rewards.outcome import OutcomeReward
from rewardswap.rewards.rule import ProgressReward
from rewardswap.types import Group, Task
from training import parameters, same_snapshot, small_critic

LOSS = ValueRegression(targets=GeneralisedAdvantage(target=True))


def value_after(critic: Critic, tokens: list[int]) -> float:
    """V of everything up to the last of `tokens`, by a plain forward pass of its trunk."""
    hidden = critic.model.trunk(input_ids=torch.tensor([tokens])).last_hidden_state
    return float(critic.model.head(hidden)[0, -1, 0].detach())


def fitted(groups: list[Group], critic: Critic) -> Batch:
    """A batch with values and targets, every action token weighing the same."""
    known = [label(group, OutcomeReward()) for group in groups]
    known = critic.annotate(known)
    known = [
        replace(group, columns={"value": group.columns["value"], "value_target": target})
        for group, target in zip(known, LOSS.target(known), strict=True)
    ]
    return LOSS.weigh(collate(known))


def test_it_starts_at_zero_with_a_trunk_of_its_own() -> None:
    policy = small_policy()
    model = ValueModel(policy.model)
    critic = Critic(model, make_optimizer=lambda m: torch.optim.AdamW(m.parameters(), lr=0.1))
    batch = fitted([made_group(outcomes=(0.0, 1.0, 1.0))], critic)
    assert not critic.score(batch).any()
    before, start = parameters(policy), parameters(critic)
    ours = dict(policy.model.get_decoder().named_parameters())
    assert all(torch.equal(p, ours[name]) for name, p in critic.model.trunk.named_parameters())
    for _ in range(2):  # the head first: at 0 it hands the trunk no gradient
        critic.step(batch, LOSS.loss)
    assert torch.equal(parameters(policy), before)
    assert not torch.equal(parameters(critic), start)
    assert any(not torch.equal(p, ours[name]) for name, p in critic.model.trunk.named_parameters())


def test_a_frozen_language_model_gives_a_critic_that_learns() -> None:
    model = ValueModel(small_llama().requires_grad_(False))
    assert all(p.requires_grad for p in model.parameters())


def test_the_value_of_a_token_is_read_where_it_is_predicted() -> None:
    critic = small_critic()
    batch = collate([made_group(outcomes=(0.0, 1.0, 0.0))])
    values = critic.score(batch)
    for b, t in torch.nonzero(batch.action_mask).tolist():
        expected = value_after(critic, batch.tokens[b, :t].tolist())
        assert float(values[b, t]) == pytest.approx(expected, abs=1e-5)
    assert not values[~batch.action_mask].any()
    assert values[batch.action_mask].std() > 0.05


def test_padding_and_micro_batches_change_no_value_and_no_step() -> None:
    found, moved = [], []
    for tokens, garbage in ((10_000, 0), (1, 0), (10_000, 29)):
        critic = small_critic()
        critic.tokens_per_microbatch = tokens
        critic.optimizer = torch.optim.SGD(critic.model.parameters(), lr=0.1)
        batch = fitted([made_group(outcomes=(0.0, 1.0, 1.0))], critic)
        dirty = batch.tokens.clone()
        dirty[torch.arange(dirty.shape[1])[None] >= batch.lengths[:, None]] = garbage
        batch = replace(batch, tokens=dirty)
        found.append(critic.score(batch))
        critic.step(batch, LOSS.loss)
        moved.append(parameters(critic))
    for one, other in ((0, 1), (0, 2)):
        torch.testing.assert_close(found[one], found[other], atol=1e-6, rtol=0)
        torch.testing.assert_close(moved[one], moved[other], atol=1e-6, rtol=0)


def test_its_error_falls() -> None:
    critic = small_critic(0.03)
    batch = fitted([made_group("a", (0.0, 1.0, 1.0)), made_group("b", (1.0, 0.0))], critic)
    free = replace(LOSS, clip=None)
    errors = [critic.step(batch, free.loss)["value_loss"] for _ in range(30)]
    assert errors[-1] < 0.2 * errors[0]


def test_only_an_episode_that_a_limit_cut_has_a_future() -> None:
    """V of the last observation, at the last turn; an episode that ended has none."""
    critic = small_critic()
    members = [
        made_trajectory("a", 0),
        replace(made_trajectory("a", 1), stop="turn_limit"),
        replace(made_trajectory("a", 2, ((4, 1),)), stop="context_full"),
        # every turn in a row of its own: only the last row leads to the last observation
        replace(made_trajectory("a", 3, fresh_rows=(0, 1)), stop="turn_limit"),
        replace(made_trajectory("a", 4, outcome=1.0), stop="done"),
    ]
    (group,) = critic.annotate([Group(Task("a", "family"), tuple(members))])
    bootstrap = group.columns["bootstrap"]
    expected = torch.zeros(5, 2)
    for n, place in ((1, 1), (2, 0), (3, 1)):
        row = rows_of(members[n], 0)[-1].tokens.tolist()
        expected[n, place] = value_after(critic, row + members[n].final_context_ids.tolist())
    torch.testing.assert_close(bootstrap, expected, atol=1e-5, rtol=0)
    assert (expected != 0).sum() == 3


def test_siblings_that_were_not_selected_are_judged_too() -> None:
    critic = small_critic()
    group = made_group(outcomes=(0.0, 1.0, 0.0))
    (whole,) = critic.annotate([group])
    chosen = replace(group, selected=(False, True, False), replayed=True)
    (same,) = critic.annotate([chosen.with_column("behavior_logprob", torch.zeros(3, 3, 3))])
    torch.testing.assert_close(same.columns["value"], whole.columns["value"])
    assert (same.columns["value"] != 0)[group.token_mask].all()
    assert same.selected == (False, True, False)
    assert same.replayed


def test_restore_brings_every_tensor_back_bitwise() -> None:
    critic = small_critic()
    batch = fitted([made_group(outcomes=(0.0, 1.0, 1.0))], critic)
    critic.step(batch, LOSS.loss)
    critic.version = 4
    before = critic.snapshot()
    critic.fresh_optimizer()
    for _ in range(3):
        critic.step(batch, LOSS.loss)
        critic.version += 1
        torch.rand(3)
    assert not same_snapshot(critic.snapshot(), before)
    critic.restore(before)
    assert same_snapshot(critic.snapshot(), before)
    runs = []
    for _ in range(2):
        critic.restore(before)
        critic.step(batch, LOSS.loss)
        runs.append(parameters(critic))
    assert torch.equal(runs[0], runs[1])


def recursion(
    reward: list[float], value: list[float], future: float, discount: list[float], trace: float
) -> list[float]:
    """GAE over a plain list of tokens, none of which is masked (arXiv:1506.02438, Eq. 16)."""
    advantage, carried = [0.0] * len(reward), 0.0
    for t in reversed(range(len(reward))):
        carried = reward[t] + discount[t] * future - value[t] + discount[t] * trace * carried
        advantage[t], future = carried, value[t]
    return advantage


@pytest.mark.parametrize("discount", [0.9, 0.0, 1.0])
@pytest.mark.parametrize("trace", [0.8, 0.0])
def test_gae_skips_what_the_environment_said(discount: float, trace: float) -> None:
    """It is the recursion over the sampled tokens alone; discounts stand between turns."""
    critic = small_critic()
    group = label(made_group(outcomes=(0.0, 1.0, 0.0)), ProgressReward())
    cut = tuple(replace(t, stop="turn_limit") if t.index == 2 else t for t in group.trajectories)
    (group,) = critic.annotate([replace(group, trajectories=cut)])
    estimate = GeneralisedAdvantage(discount, trace, whiten=False)
    (advantage,), (target,) = (f([group]) for f in (estimate, replace(estimate, target=True)))
    for n, trajectory in enumerate(group.trajectories):
        mask = group.token_mask[n]
        value = group.columns["value"][n][mask].tolist()
        lengths = [len(turn.action_ids) for turn in trajectory.turns]
        reward = [
            x for k, count in enumerate(lengths) for x in [0.0] * (count - 1) + [0.1 * k + 0.1]
        ]
        factor = [x for count in lengths for x in [1.0] * (count - 1) + [discount]]
        future = float(group.columns["bootstrap"][n].sum())
        assert (future != 0) == (n == 2)
        expected = recursion(reward, value, future, factor, trace)
        assert advantage[n][mask].tolist() == pytest.approx(expected, abs=1e-5)
        goal = [a + v for a, v in zip(expected, value, strict=True)]
        assert target[n][mask].tolist() == pytest.approx(goal, abs=1e-5)
    assert not advantage[~group.token_mask].any()


@pytest.mark.parametrize("level", ["token", "turn"])
@pytest.mark.parametrize("discount", [0.95, 0.0])
@pytest.mark.parametrize("garbage", [100.0, -1e9])
def test_a_value_at_a_masked_place_changes_nothing(
    level: str, discount: float, garbage: float
) -> None:
    critic = small_critic()
    group = label(made_group(outcomes=(0.0, 1.0, 0.0)), OutcomeReward())
    (group,) = critic.annotate([group])
    dirty = torch.where(group.token_mask, group.columns["value"], torch.tensor(garbage))
    for target in (False, True):
        estimate = GeneralisedAdvantage(discount, 0.9, level=level, target=target)
        (clean,), (same,) = (estimate([g]) for g in (group, group.with_column("value", dirty)))
        assert torch.equal(clean, same)


def test_a_value_at_a_masked_place_is_not_learned_from() -> None:
    group = made_group(outcomes=(0.0, 1.0, 0.0))
    results = []
    for garbage in (0.0, 100.0):
        critic = small_critic()
        batch = fitted([group], critic)
        places = batch.action_mask
        columns = {
            name: torch.where(places, column, torch.tensor(garbage))
            for name, column in batch.columns.items()
        }
        critic.step(replace(batch, columns=columns), LOSS.loss)
        results.append(parameters(critic))
    assert torch.equal(results[0], results[1])


def test_turn_places_are_the_first_tokens_of_the_turns() -> None:
    batch = collate([made_group(outcomes=(0.0, 1.0, 0.0))])
    weights = replace(LOSS, places="turn").weigh(batch).weights["value"]
    turns = sum(len(t.turns) for t in made_group(outcomes=(0.0, 1.0, 0.0)).trajectories)
    assert int((weights > 0).sum()) == turns
    assert float(weights.sum()) == pytest.approx(1.0)
    for b, t in torch.nonzero(weights).tolist():
        assert batch.action_mask[b, t]
        assert not batch.action_mask[b, t - 1]


def test_a_step_that_is_not_finite_is_skipped() -> None:
    critic = small_critic()
    batch = fitted([made_group(outcomes=(0.0, 1.0))], critic)
    before = critic.snapshot()

    def broken(values: torch.Tensor, part: Batch) -> tuple[torch.Tensor, dict[str, float]]:
        return values.sum() * float("nan"), {}

    assert critic.step(batch, broken)["skipped_steps"] == 1
    assert same_snapshot(critic.snapshot(), before)
