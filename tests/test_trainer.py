"""The verbs and the loops, through the trainer itself."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from made import MadePlay, made_trajectory, small_policy
from rewardswap.errors import RunStoppedError, TooManyFailuresError
from rewardswap.loops.settings import Batch, RewardSwap
from rewardswap.methods.grpo import GRPO
from rewardswap.replay import ReplayBuffer
from rewardswap.rewards.checked import label
from rewardswap.rewards.outcome import OutcomeReward
from rewardswap.rewards.rule import ProgressReward
from rewardswap.rollout.episodes import Played
from rewardswap.task_stream import TaskStream
from rewardswap.types import EpisodeFailure
from training import TASKS, Record, parameters, run_rspo, trainer_of


def test_phase_one_leaves_no_trace_in_the_agent() -> None:
    trainer = trainer_of(MadePlay())
    trainer.update(trainer.collect("learn", 2, 4), OutcomeReward(), "learn")
    before = trainer.policy.snapshot()
    agent = trainer.branch()
    trainer.policy.fresh_optimizer(0.5)
    for _ in range(2):
        trainer.update(trainer.collect("explore", 2, 4), ProgressReward(), "explore")
    trainer.harvest(trainer.collect("harvest", 2, 4), OutcomeReward())
    assert not torch.equal(
        parameters(trainer),
        torch.cat(
            [value.flatten() for name, value in before.model.items() if name.endswith("weight")]
        )[: len(parameters(trainer))],
    )
    trainer.restore(agent)
    after = trainer.policy.snapshot()
    assert all(torch.equal(after.model[name], value) for name, value in before.model.items())
    for index, state in before.optimizer["state"].items():
        assert all(
            torch.equal(after.optimizer["state"][index][name], value)
            for name, value in state.items()
        )
    assert after.optimizer["param_groups"] == before.optimizer["param_groups"]
    assert (after.version, trainer.agent_updates) == (before.version, 1)
    assert torch.equal(after.random_state, before.random_state)


def test_the_agent_draws_the_same_episodes_whether_or_not_it_was_branched() -> None:
    calls = []
    for explores in (False, True):
        play = MadePlay()
        trainer = trainer_of(play)
        agent = trainer.branch()
        if explores:
            trainer.update(trainer.collect("explore", 2, 4), ProgressReward(), "explore")
        trainer.restore(agent)
        trainer.collect("learn", 2, 4)
        calls.append(play.calls[-1])
    assert calls[0] == calls[1]


def test_what_the_agent_drew_in_a_branch_is_drawn_again_after_it() -> None:
    play = MadePlay()
    trainer = trainer_of(play)
    trainer.collect("learn", 2, 4)
    agent = trainer.branch()
    for _ in range(2):
        trainer.collect("learn", 2, 4)
    trainer.restore(agent)
    trainer.collect("learn", 2, 4)
    assert play.calls[3] == play.calls[1] != play.calls[2]


def test_explorer_and_agent_never_share_random_keys() -> None:
    play = MadePlay()
    run_rspo(trainer_of(play), RewardSwap(2, 2, 1 / 4), Batch(4, 4), updates=4)
    keys = [(seed, version, key) for keys, seed, version in play.calls for key in keys]
    assert len(keys) == len(set(keys))


def test_the_order_and_sizes_of_algorithm_one() -> None:
    record = Record()
    trainer = trainer_of(MadePlay(), record)
    buffer = run_rspo(trainer, RewardSwap(2, 3, 1 / 4), Batch(4, 4), updates=4)
    assert len(buffer) == 0
    phases = [phase for phase, *_ in record.rows]
    loop = ["explore", "explore", "harvest"]
    assert phases == [*loop, "learn", "learn", "learn", *loop, "learn"]
    for phase, metrics, groups in record.rows:
        assert len(groups) == 3
        if phase == "learn":
            assert metrics["replayed_groups"] >= 1
            # the explorer has moved, so its tokens weigh other than 1
            assert metrics["effective_sample_size"] < 1
    first_learn = record.rows[3][1]
    assert first_learn["explorer_kl"] != 0
    assert trainer.agent_updates == 4


def test_every_phase_is_counted_in_environment_steps() -> None:
    record, play = Record(), MadePlay()
    trainer = trainer_of(play, record)
    run_rspo(trainer, RewardSwap(1, 1, 1 / 4), Batch(4, 4), updates=1)
    # one update explored, one harvest, one update learned: three collections of 3 x 4 episodes
    turns = [m["turns_mean"] * 12 for _, m, _ in record.rows]
    assert trainer.counters["environment_steps"] == pytest.approx(sum(turns))
    assert record.rows[-1][1]["environment_steps"] == trainer.counters["environment_steps"]


def test_replayed_rows_are_judged_by_outcome_and_keep_the_explorers_logprobs() -> None:
    trainer = trainer_of(MadePlay())
    agent = trainer.branch()
    trainer.update(trainer.collect("explore", 3, 4), ProgressReward(), "explore")
    harvested = trainer.harvest(trainer.collect("harvest", 3, 4), OutcomeReward())
    stored = [group.columns["behavior_logprob"].clone() for group in harvested]
    trainer.restore(agent)
    buffer = ReplayBuffer(100, seed=0)
    buffer.add(harvested)
    drawn = buffer.sample(4)
    trainer.update(trainer.collect("learn", 3, 4), OutcomeReward(), "learn", drawn, 0.25)
    for group, column in zip(harvested, stored, strict=True):
        assert torch.equal(group.columns["behavior_logprob"], column)
        assert group.returns.tolist() == group.outcomes.tolist()
    assert trainer.divergence(harvested) != 0


def test_replayed_rows_are_labelled_anew_whatever_they_were_labelled_by() -> None:
    results = []
    for before in (OutcomeReward(), ProgressReward()):
        trainer = trainer_of(MadePlay())
        buffer = ReplayBuffer(100, seed=0)
        buffer.add(trainer.harvest(trainer.collect("harvest", 3, 4), before))
        fresh = trainer.collect("learn", 3, 4)
        trainer.update(fresh, OutcomeReward(), "learn", buffer.sample(4), 0.25)
        results.append(parameters(trainer))
    assert torch.equal(results[0], results[1])


def test_on_policy_ratio_is_one_at_every_token() -> None:
    record = Record()
    trainer = trainer_of(MadePlay(), record)
    trainer.update(trainer.collect("learn", 3, 4), OutcomeReward(), "learn")
    metrics = record.rows[0][1]
    assert metrics["kl_old"] == pytest.approx(0, abs=1e-9)
    assert metrics["clip_low_share"] == metrics["clip_high_share"] == 0


def test_rows_without_advantage_change_nothing_but_the_averages() -> None:
    """Read or not, the parameters after the update are the same; their tokens still count."""
    results, read = [], []
    for coefficient in (None, 1e-30):
        record = Record()
        algorithm = (
            GRPO().algorithm()
            if coefficient is None
            else GRPO(kl_coefficient=coefficient).algorithm()
        )
        trainer = trainer_of(
            MadePlay(), record, algorithm=algorithm, reference=small_policy(), minibatches=2
        )
        trainer.policy.optimizer = torch.optim.SGD(trainer.policy.model.parameters(), lr=1.0)
        for _ in range(2):
            trainer.update(trainer.collect("learn", 5, 4), OutcomeReward(), "learn")
        results.append(parameters(trainer))
        read.append([row[1]["rows_without_gradient"] for row in record.rows])
        # near ln 30 = 3.4 nats, however few rows are read
        assert all(row[1]["entropy"] > 2.0 for row in record.rows)
    assert sum(read[0]) > 0
    assert sum(read[1]) == 0
    torch.testing.assert_close(results[0], results[1], atol=1e-6, rtol=0)


def test_the_agents_learning_rate_follows_its_updates_and_the_explorers_does_not() -> None:
    record = Record()
    trainer = trainer_of(MadePlay(), record, learning_rate=lambda updates: 0.01 / (1 + updates))
    run_rspo(trainer, RewardSwap(1, 2, 1 / 4, 0.5), Batch(4, 4), updates=3)
    rates = [(phase, round(metrics["learning_rate"], 6)) for phase, metrics, _ in record.rows]
    assert rates == [
        ("explore", 0.5),
        ("harvest", 0.5),
        ("learn", 0.01),
        ("learn", 0.005),
        ("explore", 0.5),
        ("harvest", 0.5),
        ("learn", round(0.01 / 3, 6)),
    ]


def test_a_reference_is_asked_for_when_the_method_needs_one() -> None:
    with pytest.raises(ValueError, match="reference"):
        trainer_of(MadePlay(), algorithm=GRPO(kl_coefficient=0.1).algorithm())


def failing(count: int) -> Callable[..., Played]:
    """The first `count` episodes break; the others are played."""

    def play(requests: Any, seed: int, version: int, temperature: Any) -> Played:
        broken = [
            EpisodeFailure(r.task, r.index, "environment", "boiler broke") for r in requests[:count]
        ]
        rest = [made_trajectory(r.task.id, r.index, outcome=float(r.index % 2)) for r in requests]
        counters = {"environment_steps": 1.0, "generated_tokens": 1.0}
        return Played(rest[count:], broken, counters)

    return play


def test_a_failed_episode_leaves_its_siblings_and_is_counted() -> None:
    trainer = trainer_of(failing(1))
    collected = trainer.collect("learn", 2, 4)
    assert [len(group.trajectories) for group in collected.groups] == [3, 4]
    assert trainer.counters["failed_episodes"] == 1
    # three siblings: the baseline is over three
    group = label(collected.groups[0], OutcomeReward())
    assert group.returns.tolist() == [1.0, 0.0, 1.0]


def test_a_group_of_one_is_dropped_and_counted() -> None:
    trainer = trainer_of(failing(3), failure_limit=0.9)
    assert [len(g.trajectories) for g in trainer.collect("learn", 2, 4).groups] == [4]
    assert trainer.counters["dropped_groups"] == 1


def test_too_many_failures_stop_the_run_with_their_cause() -> None:
    with pytest.raises(TooManyFailuresError, match=r"5 of 8 episodes failed.*boiler broke"):
        trainer_of(failing(5)).collect("learn", 2, 4)
    trainer_of(failing(4)).collect("learn", 2, 4)  # the limit itself, half of them, is allowed


def test_episodes_of_a_truncating_sampler_are_refused() -> None:
    def truncating(*arguments: Any) -> Played:
        return replace(MadePlay()(*arguments), truncating=True)

    trainer = trainer_of(truncating)
    with pytest.raises(
        ValueError, match=r"sampled with top_p, top_k or min_p.* ratio would not be"
    ):
        trainer.collect("learn", 2, 2)


def test_sizes_that_alpha_does_not_divide_name_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"1/8 of 12 tasks is 1\.5.*8, 16; .*12 tasks: 1/12, 1/6"):
        RewardSwap(alpha=1 / 8).split(Batch(12, 8))
    assert RewardSwap(alpha=1 / 8).split(Batch(16, 8)) == (14, 16)
    with pytest.raises(ValueError, match="do nothing at alpha = 0"):
        RewardSwap(alpha=0.0)


def test_a_task_stream_plays_every_task_once_per_epoch() -> None:
    stream = TaskStream(TASKS, seed=1)
    epochs = [[task.id for task in stream.draw(6)] for _ in range(3)]
    assert all(sorted(epoch) == sorted(t.id for t in TASKS) for epoch in epochs)
    assert epochs[0] != epochs[1]
    again = TaskStream(TASKS, seed=1)
    again.cursor = 7
    assert [task.id for task in again.draw(3)] == epochs[1][1:4]


def test_a_method_that_cannot_use_the_rewards_stops_the_run_with_the_reason() -> None:
    def refuse(groups: object) -> list[torch.Tensor]:
        raise ValueError("returns must be >= 0")

    algorithm = replace(GRPO().algorithm(), advantage=refuse)
    trainer = trainer_of(MadePlay(), algorithm=algorithm)
    with pytest.raises(RunStoppedError, match="cannot use these rewards: returns must be >= 0"):
        trainer.update(trainer.collect("learn", 2, 4), OutcomeReward(), "learn")
