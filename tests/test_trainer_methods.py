"""What a method's choices do to an update: filters, divergences, caps, mixing, entropy."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from made import MadePlay, small_policy
from rewardswap.core.advantages import group_z_score
from rewardswap.errors import RunStoppedError
from rewardswap.methods.dapo import DAPO
from rewardswap.methods.grpo import GRPO
from rewardswap.methods.gspo import GSPO
from rewardswap.methods.ppo import PPO
from rewardswap.models.batching import Batch, collate, uncollate
from rewardswap.models.policy import Policy
from rewardswap.rewards.outcome import OutcomeReward
from rewardswap.rewards.rule import ProgressReward
from rewardswap.trainer import Trainer
from rewardswap.types import Group, Trajectory
from training import (
    ChangedPlay,
    Record,
    by_index,
    parameters,
    read_batches,
    trainer_of,
    turn_per_row,
    won,
)


def descending(rate: float = 0.1, **settings: Any) -> Policy:
    """A policy under plain gradient descent, which blows no rounding up."""
    return small_policy(
        make_optimizer=lambda m: torch.optim.SGD(m.parameters(), lr=rate), **settings
    )


def stored_groups(trainer: Trainer, moved: float = 0.05, tasks: int = 2) -> list[Group]:
    """Replayed groups whose behavior policy is another one than the trainer's."""
    agent = trainer.branch()
    with torch.no_grad():
        stream = torch.Generator().manual_seed(0)
        for parameter in trainer.policy.model.parameters():
            parameter += moved * torch.randn(parameter.shape, generator=stream)
    harvested = trainer.harvest(trainer.collect("harvest", tasks, 4), OutcomeReward())
    trainer.restore(agent)
    return [replace(group, replayed=True) for group in harvested]


def one_batch(
    algorithm: Any, play: Any = None, *, replay: bool = True, share: float = 0.25, **settings: Any
) -> tuple[Batch, Record, Trainer]:
    """The batch of the optimizer step of one update, and what was reported of it."""
    record = Record()
    trainer = trainer_of(play or ChangedPlay(by_index), record, algorithm=algorithm, **settings)
    stored = stored_groups(trainer) if replay else []
    batches = read_batches(trainer.policy)
    trainer.update(trainer.collect("learn", 2, 4), OutcomeReward(), "learn", stored, share)
    (batch,) = batches
    return batch, record, trainer


class Lessons(MadePlay):
    """Groups are informative where the function of their task and first index says so."""

    def __init__(self, teaches: Callable[[str, int], bool], size: int) -> None:
        super().__init__()
        self.teaches = teaches
        self.size = size

    def __call__(self, *arguments: Any) -> Any:
        played = super().__call__(*arguments)
        return replace(played, trajectories=[self._judged(t) for t in played.trajectories])

    def _judged(self, t: Trajectory) -> Trajectory:
        first = t.index // self.size * self.size
        return won(t, self.teaches(t.task.id, first) and t.index % self.size == 0)


def test_missing_groups_are_collected_again_without_repeating_a_key() -> None:
    """Ten places from six tasks: tasks come again, with episodes of further numbers."""
    play, record = Lessons(lambda _, first: first >= 2, 2), Record()
    trainer = trainer_of(play, record, algorithm=DAPO().algorithm())
    trainer.update(trainer.collect("learn", 10, 2), OutcomeReward(), "learn")
    keys = [(seed, version, key) for keys, seed, version in play.calls for key in keys]
    assert len(keys) == len(set(keys))
    # ten groups hold four tasks twice: four are kept, six are asked for; all tasks come again
    assert [len(asked) // 2 for asked, *_ in play.calls] == [10, 6]
    _, metrics, groups = record.rows[0]
    assert (metrics["collections"], metrics["filtered_groups"]) == (2, 6)
    assert (metrics["missing_groups"], metrics["fresh_groups"]) == (0, 10)
    assert len(groups) == 16
    assert metrics["success"] == pytest.approx(10 / 32)
    steps = sum(len(t.turns) for group in groups for t in group.trajectories)
    assert metrics["rollout/environment_steps"] == metrics["environment_steps"] == steps


def test_what_is_still_missing_after_the_last_collection_is_counted() -> None:
    play, record = Lessons(lambda task, _: task == "task-0", 2), Record()
    trainer = trainer_of(play, record, algorithm=DAPO(collections=3).algorithm())
    trainer.update(trainer.collect("learn", 6, 2), OutcomeReward(), "learn")
    _, metrics, groups = record.rows[0]
    assert len(play.calls) == metrics["collections"] == 3
    kept = sum(len({t.outcome for t in g.trajectories}) > 1 for g in groups)
    assert 0 < kept == metrics["fresh_groups"] < 6
    assert metrics["missing_groups"] == 6 - kept
    assert metrics["filtered_groups"] == len(groups) - kept


def test_a_run_without_any_group_to_learn_from_stops_and_says_why() -> None:
    play = Lessons(lambda *_: False, 2)
    trainer = trainer_of(play, algorithm=DAPO(collections=4).algorithm())
    before = parameters(trainer)
    with pytest.raises(RunStoppedError, match="none of 12 groups in 4 collections was kept"):
        trainer.update(trainer.collect("learn", 3, 2), OutcomeReward(), "learn")
    assert torch.equal(parameters(trainer), before)
    assert trainer.agent_updates == 0


def test_replayed_groups_are_not_filtered() -> None:
    record = Record()
    trainer = trainer_of(ChangedPlay(by_index), record, algorithm=DAPO().algorithm())
    stored = stored_groups(trainer)
    equal = [
        replace(group, trajectories=tuple(won(t, True) for t in group.trajectories))
        for group in stored
    ]
    trainer.update(trainer.collect("learn", 2, 4), OutcomeReward(), "learn", equal, 0.25)
    metrics = record.rows[-1][1]
    assert (metrics["replayed_groups"], metrics["filtered_groups"]) == (2, 0)


def gaps(trainer: Trainer, groups: Sequence[Group]) -> list[torch.Tensor]:
    """log pi_old - log pi_reference of all tokens, in the groups' shape."""
    assert trainer.reference is not None
    batch = collate(groups)
    gap = trainer.policy.score(batch).logprob - trainer.reference.score(batch).logprob
    return uncollate(groups, gap)


def test_the_divergence_in_the_reward_comes_off_before_advantages_are_made() -> None:
    algorithm = GRPO(kl_coefficient=0.3, kl_placement="reward", kl_estimator="k1").algorithm()
    record = Record()
    trainer = trainer_of(
        ChangedPlay(by_index), record, algorithm=algorithm, reference=small_policy(7)
    )
    stored = [replace(g, selected=(True, False) * 2) for g in stored_groups(trainer)]
    fresh = trainer.collect("learn", 2, 4)
    groups = [*fresh.groups, *stored]
    plain = [replace(g, columns={}, selected=(True,) * 4, replayed=False) for g in groups]
    expected, penalties = [], []
    for group, gap in zip(plain, gaps(trainer, plain), strict=True):
        returns = group.outcomes - 0.3 * gap.sum(dim=(1, 2))
        expected.append(group_z_score(returns))
        penalties.append(-0.3 * gap[group.token_mask])
    batches = read_batches(trainer.policy)
    trainer.update(fresh, OutcomeReward(), "learn", stored, 0.25)
    (batch,) = batches
    found = [float(row[row != 0][0]) for row in batch.column("advantage")]
    # siblings that replay left out count in their group, and have no row
    wanted = torch.cat([e[torch.tensor(g.selected)] for e, g in zip(expected, groups, strict=True)])
    assert found == pytest.approx(wanted.tolist(), abs=1e-4)
    mean = float(torch.cat(penalties).mean())
    assert record.rows[-1][1]["reward_divergence"] == pytest.approx(mean, abs=1e-5)
    # the record speaks of the outcome alone
    assert record.rows[-1][1]["outcome_reward_mean"] == pytest.approx(0.5)


def test_a_policy_that_is_its_reference_has_no_divergence_in_the_reward() -> None:
    results = []
    for method in (GRPO(), GRPO(kl_coefficient=0.3, kl_placement="reward")):
        trainer = trainer_of(
            ChangedPlay(by_index), algorithm=method.algorithm(), reference=small_policy()
        )
        trainer.update(trainer.collect("learn", 2, 4), OutcomeReward(), "learn")
        results.append(parameters(trainer))
    assert torch.equal(results[0], results[1])


def test_the_divergence_in_the_reward_stands_on_its_own_tokens_for_a_critic() -> None:
    method = PPO(
        kl_coefficient=0.3, kl_placement="reward", kl_estimator="k1", whiten=False, discount=1.0
    )
    trainer = trainer_of(
        ChangedPlay(by_index), algorithm=method.algorithm(), reference=small_policy(7)
    )
    assert trainer.critic is not None
    collected = trainer.collect("learn", 2, 4)
    known = gaps(trainer, collected.groups)
    batches = read_batches(trainer.critic)
    trainer.update(collected, OutcomeReward(), "learn")
    (batch,) = batches
    rows = [
        t.outcome - 0.3 * gap[n][group.token_mask[n]].flip(0).cumsum(0).flip(0)
        for group, gap in zip(collected.groups, known, strict=True)
        for n, t in enumerate(group.trajectories)
    ]
    # without discount and trace 1 the target is what is still to come, token by token
    found = batch.column("value_target")[batch.action_mask]
    torch.testing.assert_close(found, torch.cat(rows), atol=1e-4, rtol=0)


@pytest.mark.parametrize("behavior", ["trainer", "engine"])
def test_whose_log_probs_the_behavior_policys_are(behavior: Any) -> None:
    batch, record, trainer = one_batch(GRPO(behavior=behavior).algorithm())
    fresh, replayed = ~batch.replayed, batch.replayed
    old, found = batch.column("old_logprob"), batch.column("behavior_logprob")
    learned = record.rows[-1][2]
    sampled = collate([g.with_column("x", g.sampled_logprob) for g in learned]).column("x")
    mask = batch.action_mask
    if behavior == "trainer":
        assert torch.equal(found[fresh], old[fresh])
    else:
        ours = found[fresh][:, : sampled.shape[1]]
        assert torch.equal(ours, sampled)
    (_, _, harvested), *_ = record.rows
    engines = collate([g.with_column("x", g.sampled_logprob) for g in harvested]).column("x")
    same = torch.equal(found[replayed][mask[replayed]], engines[engines != 0])
    assert same == (behavior == "engine")
    # the gap of engine and trainer is known either way
    assert record.rows[-1][1]["engine_gap_mean"] > 0.1
    assert trainer.agent_updates == 1


@pytest.mark.parametrize("cap", ["none", "truncate", "mask"])
def test_importance_is_capped_where_it_is_above_the_maximum(cap: Any) -> None:
    method = GRPO(importance_cap=cap, importance_maximum=1.2)
    batch, record, _ = one_batch(method.algorithm())
    mask, weights = batch.action_mask, batch.weights["policy"]
    center = (batch.column("old_logprob") - batch.column("behavior_logprob")).exp()
    above = (center > 1.2) & mask
    assert 0.05 < float(above.sum() / (mask & batch.replayed[:, None]).sum()) < 0.9
    held = {
        "none": center,
        "truncate": center.clamp(max=1.2),
        "mask": torch.where(above, 0.0, center),
    }
    # before the first step the ratio is c, nothing is clipped, and the loss is -c A
    expected = -(weights * held[cap] * batch.column("advantage"))[mask].sum()
    metrics = record.rows[-1][1]
    assert metrics["policy_loss"] == pytest.approx(float(expected), abs=1e-5)
    assert metrics["clip_low_share"] == metrics["clip_high_share"] == 0
    if cap == "none":
        assert "importance_capped_share" not in metrics
    else:
        share = float(weights[above].sum() / weights[mask].sum())
        assert metrics["importance_capped_share"] == pytest.approx(share, abs=1e-5)


def test_a_cap_changes_nothing_without_replay() -> None:
    results = []
    for cap in ("none", "mask"):
        method = GRPO(importance_cap=cap, importance_maximum=1.0)
        _, _, trainer = one_batch(method.algorithm(), replay=False)
        results.append(parameters(trainer))
    assert torch.equal(results[0], results[1])


@pytest.mark.parametrize("share", [0.25, 0.5])
def test_concatenated_rows_are_one_average_whatever_alpha_is(share: float) -> None:
    batch, *_ = one_batch(GRPO(mixing="concatenated").algorithm(), share=share)
    mask, stored = batch.action_mask, batch.replayed[:, None] & batch.action_mask
    weights = batch.weights["policy"]
    expected = torch.full_like(weights, 1 / int(mask.sum()))
    torch.testing.assert_close(weights[mask], expected[mask])
    batch, *_ = one_batch(GRPO(mixing="weighted").algorithm(), share=share)
    weights = batch.weights["policy"]
    assert float(weights[stored].sum()) == pytest.approx(share)
    torch.testing.assert_close(
        weights[stored], torch.full_like(weights, share / int(stored.sum()))[stored]
    )
    assert float(weights[mask & ~stored].sum()) == pytest.approx(1 - share)


@pytest.mark.parametrize("on_replay", [True, False])
def test_the_divergence_term_counts_replayed_rows_only_where_it_is_on(on_replay: bool) -> None:
    batch, record, _ = one_batch(
        GRPO(kl_coefficient=0.2, kl_on_replay=on_replay).algorithm(), reference=small_policy(7)
    )
    weights, replayed = batch.weights["kl_reference"], batch.replayed
    assert torch.equal(weights[~replayed], batch.weights["policy"][~replayed])
    assert float(weights[replayed].sum()) == pytest.approx(0.25 if on_replay else 0.0)
    gap = batch.column("reference_logprob") - batch.column("old_logprob")
    expected = (weights * (gap.exp() - 1 - gap).clamp(max=10)).sum()
    assert record.rows[-1][1]["kl_reference"] == pytest.approx(float(expected), abs=1e-5)


def entropy_after(coefficient: float, updates: int = 3) -> tuple[float, float]:
    """Mean entropy of the same tokens before and after updates that no reward moves."""
    trainer = trainer_of(
        ChangedPlay(lambda t: won(t, False)),
        policy=descending(0.3),
        algorithm=GRPO(entropy_coefficient=coefficient).algorithm(),
    )
    batch = collate(trainer.collect("harvest", 2, 4).groups)

    def mean() -> float:
        return float(trainer.policy.score(batch).entropy[batch.action_mask].mean())

    before = mean()
    for _ in range(updates):
        trainer.update(trainer.collect("learn", 3, 4), OutcomeReward(), "learn")
    return before, mean()


def test_an_entropy_bonus_raises_entropy() -> None:
    before, after = entropy_after(0.5)
    assert after > before + 0.01
    before, after = entropy_after(0.0)
    assert after == before


def test_explorer_and_agent_may_run_different_algorithms() -> None:
    record = Record()
    trainer = trainer_of(
        ChangedPlay(by_index),
        record,
        explorer_algorithm=GRPO().algorithm(),
        algorithm=GRPO(dual_clip=3.0).algorithm(),
    )
    trainer.update(trainer.collect("explore", 2, 4), ProgressReward(), "explore")
    trainer.update(trainer.collect("learn", 2, 4), OutcomeReward(), "learn")
    assert ["dual_clip_share" in metrics for _, metrics, _ in record.rows] == [False, True]


class ByTurn:
    """Only the first turn of successes and the last of failures have an advantage."""

    def __call__(self, groups: Sequence[Group]) -> list[torch.Tensor]:
        found = []
        for group in groups:
            advantage = torch.zeros(group.turn_mask.shape)
            for n, trajectory in enumerate(group.trajectories):
                place = 0 if trajectory.outcome else len(trajectory.turns) - 1
                advantage[n, place] = 1.0 if trajectory.outcome else -0.5
            # one trajectory has none at all
            advantage[-1] = 0.0
            found.append(advantage)
        return found


@pytest.mark.parametrize("tokens", [10_000, 16])
def test_rows_without_advantage_are_read_where_the_ratio_is_the_trajectorys(tokens: int) -> None:
    """Read or left out, rows of a trajectory in several rows leave the same parameters."""
    results, unread = [], []
    for coefficient in (0.0, 1e-30):
        algorithm = replace(GSPO(kl_coefficient=coefficient).algorithm(), advantage=ByTurn())
        assert algorithm.whole_trajectories
        record = Record()
        trainer = trainer_of(
            ChangedPlay(lambda t: by_index(turn_per_row(t))),
            record,
            policy=descending(1.0, tokens_per_microbatch=tokens),
            algorithm=algorithm,
            reference=small_policy(),
            minibatches=2,
        )
        stored = stored_groups(trainer)
        for _ in range(2):
            fresh = trainer.collect("learn", 2, 4)
            trainer.update(fresh, OutcomeReward(), "learn", stored, 0.25)
        results.append(parameters(trainer))
        unread.append(record.metric("rows_without_gradient"))
    lone = sum(len(g.trajectories[-1].turns) for g in [*fresh.groups, *stored])
    assert unread[0][-1] == lone > 0
    assert unread[1] == [0, 0]
    torch.testing.assert_close(results[0], results[1], atol=1e-6, rtol=0)


def test_a_trajectorys_ratio_is_the_same_however_small_the_micro_batches_are() -> None:
    results = []
    for tokens in (10_000, 1):
        trainer = trainer_of(
            ChangedPlay(lambda t: by_index(turn_per_row(t))),
            policy=descending(1.0, tokens_per_microbatch=tokens),
            algorithm=GSPO().algorithm(),
        )
        stored = stored_groups(trainer)
        for _ in range(2):
            fresh = trainer.collect("learn", 2, 4)
            trainer.update(fresh, OutcomeReward(), "learn", stored, 0.25)
        results.append(parameters(trainer))
    torch.testing.assert_close(results[0], results[1], atol=1e-6, rtol=0)
