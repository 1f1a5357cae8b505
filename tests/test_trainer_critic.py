"""Updates of a method with a critic, through the trainer itself."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import torch

from made import MadePlay
from rewardswap.loops.budget import Budget
from rewardswap.loops.settings import Batch, RewardSwap
from rewardswap.methods.ppo import PPO
from rewardswap.models.critic import Critic
from rewardswap.rewards.outcome import OutcomeReward
from rewardswap.rewards.rule import ProgressReward
from rewardswap.trainer import Trainer
from rewardswap.types import Group
from training import (
    ChangedPlay,
    Record,
    by_index,
    every_second_is_cut,
    on_policy,
    parameters,
    read_batches,
    run_rspo,
    small_critic,
    trainer_of,
)

PLAIN = PPO(whiten=False)


def hand_advantages(critic: Critic, group: Group, discount: float) -> list[torch.Tensor]:
    """Of each trajectory's tokens, from the critic as it is and the outcome alone (trace 1).

    A_t = sum of discounted rewards to come + discounted V of the last observation - V_t.
    """
    (known,) = critic.annotate([group])
    found = []
    for n, trajectory in enumerate(group.trajectories):
        future = float(known.columns["bootstrap"][n].sum()) * discount + trajectory.outcome
        goals: list[float] = []
        for turn in reversed(trajectory.turns):
            goals = [future] * len(turn.action_ids) + goals
            future *= discount
        value = known.columns["value"][n][group.token_mask[n]]
        found.append(torch.tensor(goals) - value)
    return found


def explored(trainer: Trainer, tasks: int = 2) -> tuple[list[Group], Critic]:
    """What an explorer harvests that has learned, and its critic, after the agent is back."""
    agent = trainer.branch()
    for _ in range(2):
        trainer.update(trainer.collect("explore", tasks, 4), ProgressReward(), "explore")
    harvested = trainer.harvest(trainer.collect("harvest", tasks, 4), OutcomeReward())
    assert trainer.critic is not None
    explorers = small_critic()
    explorers.restore(trainer.critic.snapshot())
    trainer.restore(agent)
    stored = [replace(g, selected=(True, False, True, True), replayed=True) for g in harvested]
    return stored, explorers


def rows_by_kind(batch: Any, name: str) -> tuple[torch.Tensor, torch.Tensor]:
    """A column at the action tokens of fresh and of replayed rows, in order."""
    kinds = (~batch.replayed, batch.replayed)
    return tuple(batch.column(name)[k][batch.action_mask[k]] for k in kinds)


def test_replayed_rows_get_their_advantages_from_the_agents_critic_of_now() -> None:
    trainer = trainer_of(ChangedPlay(every_second_is_cut), algorithm=PLAIN.algorithm())
    trainer.update(trainer.collect("learn", 2, 4), OutcomeReward(), "learn")
    stored, explorers = explored(trainer)
    fresh = trainer.collect("learn", 2, 4)
    agents = small_critic()
    assert trainer.critic is not None
    agents.restore(trainer.critic.snapshot())
    batches = read_batches(trainer.policy)
    trainer.update(fresh, OutcomeReward(), "learn", stored, 0.25)
    (batch,) = batches

    def expected(critic: Critic, groups: Sequence[Group]) -> torch.Tensor:
        return torch.cat(
            [
                advantage
                for group in groups
                for advantage, chosen in zip(
                    hand_advantages(critic, group, PLAIN.discount), group.selected, strict=True
                )
                if chosen
            ]
        )

    ours, theirs = rows_by_kind(batch, "advantage")
    torch.testing.assert_close(ours, expected(agents, fresh.groups), atol=1e-5, rtol=0)
    torch.testing.assert_close(theirs, expected(agents, stored), atol=1e-5, rtol=0)
    # the critic of the explorer, fitted to dense returns, says something else
    assert (theirs - expected(explorers, stored)).abs().max() > 0.01


@pytest.mark.parametrize("discount", [0.9, 0.0])
def test_cut_episodes_bootstrap_in_the_update_and_finished_ones_do_not(discount: float) -> None:
    targets = []
    for play in (MadePlay(), ChangedPlay(every_second_is_cut)):
        trainer = trainer_of(play, algorithm=replace(PLAIN, discount=discount).algorithm())
        critic = trainer.critic
        assert critic is not None
        batches = read_batches(critic)
        collected = trainer.collect("learn", 2, 4)
        futures = [
            float(known.columns["bootstrap"][n].sum())
            for known in critic.annotate(collected.groups)
            for n in range(4)
        ]
        trainer.update(collected, OutcomeReward(), "learn")
        (batch,) = batches
        last = [torch.nonzero(mask)[-1, 0] for mask in batch.action_mask]
        rows = range(len(batch))
        targets.append([float(batch.column("value_target")[b, last[b]]) for b in rows])
    outcomes = [t.outcome for group in collected.groups for t in group.trajectories]
    assert targets[0] == pytest.approx(outcomes, abs=1e-6)
    expected = [o + discount * f for o, f in zip(outcomes, futures, strict=True)]
    assert targets[1] == pytest.approx(expected, abs=1e-5)
    assert [f != 0 for f in futures] == [False, True] * 4


def updated(method: PPO, replay: bool, minibatches: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    """Policy and critic after one update with or without replayed groups."""
    trainer = trainer_of(
        MadePlay(),
        algorithm=method.algorithm(),
        critic=small_critic(blank=True),
        minibatches=minibatches,
    )
    stored, _ = explored(trainer)
    fresh = trainer.collect("learn", 3, 4)
    trainer.update(fresh, OutcomeReward(), "learn", stored if replay else [], 0.25)
    assert trainer.critic is not None
    return parameters(trainer), parameters(trainer.critic)


@pytest.mark.parametrize("minibatches", [1, 3])
def test_the_critic_learns_from_fresh_rows_only(minibatches: int) -> None:
    with_replay, without = (updated(PPO(), replay, minibatches) for replay in (True, False))
    assert not torch.equal(with_replay[0], without[0])
    assert torch.equal(with_replay[1], without[1])


def test_the_critic_learns_from_replayed_rows_when_asked() -> None:
    method = PPO(critic_on_replay=True)
    with_replay, without = (updated(method, replay) for replay in (True, False))
    assert not torch.equal(with_replay[1], without[1])
    assert torch.equal(without[1], updated(PPO(), False)[1])


@pytest.mark.parametrize("warmup", [0, 2])
def test_the_policy_waits_while_its_critic_warms_up(warmup: int) -> None:
    record = Record()
    trainer = trainer_of(
        MadePlay(), record, algorithm=PPO(critic_warmup=warmup).algorithm(), minibatches=2
    )
    assert trainer.critic is not None
    policies, critics = [parameters(trainer)], [parameters(trainer.critic)]
    for _ in range(3):
        trainer.update(trainer.collect("learn", 2, 4), OutcomeReward(), "learn")
        policies.append(parameters(trainer))
        critics.append(parameters(trainer.critic))
    still = [torch.equal(a, b) for a, b in pairwise(policies)]
    assert still == [n < warmup for n in range(3)]
    assert not any(torch.equal(a, b) for a, b in pairwise(critics))
    assert record.metric("critic_warmup") == [float(n < warmup) for n in range(3)]
    assert ("policy_loss" in record.rows[0][1]) == (warmup == 0)
    # an update is an update: the budget runs, and no random key comes twice
    assert trainer.agent_updates == 3
    assert [version for _, _, version in trainer.collector.play.calls] == [0, 1, 2]


def test_the_explorers_warm_up_is_thrown_away_with_its_critic() -> None:
    record = Record()
    trainer = trainer_of(MadePlay(), record, algorithm=PPO(critic_warmup=1).algorithm())
    run_rspo(trainer, RewardSwap(2, 2, 1 / 4), Batch(4, 4), updates=2)
    assert record.metric("critic_warmup", "explore") == [1, 0]
    assert record.metric("critic_warmup") == [1, 0]
    assert trainer.critic is not None
    assert trainer.critic.version == 2


def test_the_critics_metrics_say_how_well_it_fits() -> None:
    record = Record()
    trainer = trainer_of(
        ChangedPlay(by_index),
        record,
        # nothing is discounted: every value target is the trajectory's outcome
        algorithm=PPO(discount=1.0, value_clip=None).algorithm(),
        critic=small_critic(0.02, blank=True),
    )
    on_policy(trainer, budget=Budget(4), tasks=2, group_size=4, reward=OutcomeReward())
    first = record.rows[0][1]
    # V = 0 everywhere, and targets that are 0 or 1: the error is the share of ones
    assert first["value_mean"] == 0
    assert first["explained_variance"] == pytest.approx(0, abs=1e-6)
    tokens = [(t.outcome, t.action_token_count) for g in record.rows[0][2] for t in g.trajectories]
    share = sum(o * n for o, n in tokens) / sum(n for _, n in tokens)
    assert first["value_loss"] == pytest.approx(share, abs=1e-5)
    assert first["value_clip_share"] == 0
    assert first["critic_skipped_steps"] == 0
    assert all(norm > 0 for norm in record.metric("critic_gradient_norm"))


def test_a_value_may_move_by_its_clip_in_one_update() -> None:
    record = Record()
    trainer = trainer_of(
        ChangedPlay(by_index),
        record,
        algorithm=PPO(value_clip=0.01).algorithm(),
        critic=small_critic(0.05, blank=True),
        minibatches=4,
    )
    trainer.update(trainer.collect("learn", 2, 4), OutcomeReward(), "learn")
    assert record.metric("value_clip_share")[0] > 0.1


def test_a_critic_is_asked_for_when_the_method_learns_with_one() -> None:
    with pytest.raises(ValueError, match="give `critic`"):
        trainer_of(MadePlay(), algorithm=PPO().algorithm(), critic=None)
