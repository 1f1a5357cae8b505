"""What goes beyond the paper, through the trainer and the loop themselves."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from made import MadePlay
from rewardswap.errors import RunStoppedError
from rewardswap.loops.adaptive_alpha import AdaptiveAlpha
from rewardswap.loops.budget import Budget
from rewardswap.loops.hacking import Alarm
from rewardswap.loops.hacking_rules import HackingRules
from rewardswap.loops.hacking_watch import HackingWatch
from rewardswap.loops.k_schedule import PhaseLengths
from rewardswap.loops.settings import Batch, RewardSwap
from rewardswap.models.batching import collate, uncollate
from rewardswap.replay_staleness import Staleness, StalenessReplay
from rewardswap.rewards.calling import CallableReward
from rewardswap.rewards.outcome import OutcomeReward
from rewardswap.rewards.rule import ProgressReward
from rewardswap.rollout.episodes import EpisodeRequest, Played
from rewardswap.types import Group, Trajectory
from training import ChangedPlay, Record, by_index, on_policy, read_batches, run_rspo, trainer_of

SIZES = Batch(4, 4)


class Heard(MadePlay):
    """Remembers the temperature of every call."""

    def __init__(self) -> None:
        super().__init__()
        self.temperatures: list[tuple[float | None, int]] = []

    def __call__(
        self, requests: Sequence[EpisodeRequest], seed: int, version: int, temperature: float | None
    ) -> Played:
        self.temperatures.append((temperature, len({r.task.id for r in requests})))
        return super().__call__(requests, seed, version, temperature)


def test_the_reused_batch_is_the_agents_and_is_on_policy() -> None:
    record = Record()
    trainer = trainer_of(MadePlay(), record)
    swap = RewardSwap(2, 2, 1 / 4, reuse_first_batch=True)
    run_rspo(trainer, swap, SIZES, updates=2)
    phases = [phase for phase, _, _ in record.rows]
    assert phases == ["explore", "explore", "harvest", "learn", "learn"]
    first, learned = record.rows[0][2], record.rows[3][2]
    assert [g.trajectories for g in learned] == [g.trajectories for g in first]
    assert [g.trajectories for g in record.rows[4][2]] != [g.trajectories for g in first]
    assert learned[0].reward_in_force.tolist() == OutcomeReward().score(learned[0]).tolist()
    # one collection less: 2 of the explorer, its harvest, and 1 of the agent
    assert len(trainer.collector.play.calls) == 4


def test_reuse_costs_what_the_specification_says() -> None:
    """Rollouts per update of the agent at k = 3 and alpha = 1/8, in batches of B tasks."""
    expected = {("final", False): 2.0417, ("final", True): 1.75, ("during", False): 1.75}
    expected["during", True] = 1.4583
    for (harvest, reuse), rollouts in expected.items():
        play = MadePlay()
        swap = RewardSwap(3, 3, 1 / 8, harvest=harvest, reuse_first_batch=reuse)  # type: ignore[arg-type]
        run_rspo(trainer_of(play), swap, Batch(8, 2), updates=3)
        tasks = sum(len(requests) // 2 for requests, _, _ in play.calls)
        assert tasks / 8 / 3 == pytest.approx(rollouts, abs=1e-4)


def test_a_reused_batch_is_not_stored_as_well() -> None:
    stored: list[list[Group]] = []
    swap = RewardSwap(2, 1, 1 / 4, harvest="during", reuse_first_batch=True)
    buffer = swap.buffer(5)
    add = buffer.add
    buffer.add = lambda groups: (stored.append(list(groups)), add(groups))  # type: ignore[assignment,func-returns-value]
    record = Record()
    run_rspo(trainer_of(MadePlay(), record), swap, SIZES, updates=1, buffer=buffer)
    second = record.rows[1][2]  # explore, then the harvest of the second batch, then explore
    assert [phase for phase, _, _ in record.rows] == ["explore", "harvest", "explore", "learn"]
    assert [g.trajectories for g in stored[0]] == [g.trajectories for g in second]


def test_nothing_is_left_to_replay_if_the_only_batch_is_reused() -> None:
    with pytest.raises(ValueError, match="nothing to replay"):
        RewardSwap(1, 1, 1 / 4, harvest="during", reuse_first_batch=True)


def test_the_ladder_plays_and_scores_the_harvest_at_its_temperatures() -> None:
    play, record = Heard(), Record()
    trainer = trainer_of(play, record)
    before = trainer.policy.snapshot()
    swap = RewardSwap(0, 1, 1 / 4, harvest_temperatures=(0.5, 1.0, 2.0))
    run_rspo(trainer, swap, SIZES, updates=1)
    assert play.temperatures == [(0.5, 1), (1.0, 1), (2.0, 1), (None, 3)]
    trainer.policy.restore(before)
    for (_, _, groups), temperature in zip(record.rows[:3], (0.5, 1.0, 2.0), strict=True):
        scored = uncollate(groups, trainer.policy.score(collate(groups), temperature).logprob)
        assert torch.equal(groups[0].columns["behavior_logprob"], scored[0])
    cold, warm = (record.rows[n][2][0].columns["behavior_logprob"] for n in (0, 2))
    assert not torch.equal(cold, warm)


def test_what_was_sampled_at_another_temperature_cannot_be_learned_from() -> None:
    trainer = trainer_of(MadePlay())
    other = trainer.collect("harvest", 2, 4, 0.5)
    with pytest.raises(ValueError, match=r"at temperature 0\.5, the policy learns at 1\.0"):
        trainer.update(other, OutcomeReward(), "learn")
    trainer.update(trainer.collect("learn", 2, 4, 1.0), OutcomeReward(), "learn")


def weight_of_replay(success: Any, **settings: Any) -> list[float]:
    """The share of replayed rows in each optimizer step of the agent."""
    trainer = trainer_of(ChangedPlay(success))
    batches = read_batches(trainer.policy)
    run_rspo(trainer, RewardSwap(0, 2, 1 / 4, **settings), SIZES, updates=2)
    return [
        float(b.weights["policy"][b.replayed].sum() / b.weights["policy"].sum()) for b in batches
    ]


def test_the_weight_of_replay_follows_the_agents_success() -> None:
    """Half of the episodes are won: alpha (.8 - .5) / (.8 - .2) = alpha / 2."""
    adaptive = AdaptiveAlpha(least_successes=1)
    assert weight_of_replay(by_index) == pytest.approx([0.25, 0.25])
    changed = weight_of_replay(by_index, adaptive_alpha=True, adaptive=adaptive)
    assert changed == pytest.approx([0.125, 0.125])
    scarce = AdaptiveAlpha(least_successes=100)
    assert weight_of_replay(by_index, adaptive_alpha=True, adaptive=scarce) == [0.0, 0.0]


def test_the_weight_of_replay_is_recorded() -> None:
    record = Record()
    swap = RewardSwap(0, 1, 1 / 4, adaptive_alpha=True, adaptive=AdaptiveAlpha(least_successes=1))
    run_rspo(trainer_of(ChangedPlay(by_index), record), swap, SIZES, updates=1)
    assert record.metric("replay_share") == pytest.approx([0.125])


def test_an_ageing_buffer_outlives_the_loop() -> None:
    swap = RewardSwap(0, 1, 1 / 4, replay_ages=True, staleness=Staleness(tau=2.0, oldest=1))
    buffer = run_rspo(trainer_of(ChangedPlay(by_index)), swap, SIZES, updates=3)
    assert isinstance(buffer, StalenessReplay)
    assert len(buffer) == 12  # what the last loop stored, aged by one; the second's is gone
    assert buffer.expired > 0
    brief = replace(swap, staleness=Staleness(tau=0.0))
    assert len(run_rspo(trainer_of(ChangedPlay(by_index)), brief, SIZES, updates=3)) == 0


ALWAYS = HackingRules(
    least_correlation=0.99, correlation_updates=1, trend_updates=3, rise_z=1e-9, held=1
)
"""Gives an alarm as soon as the dense reward rises over three batches."""


def hacked_run(on_hacking: Any) -> tuple[Record, list[Alarm]]:
    """A run whose dense reward rises from batch to batch and says nothing of the outcome."""
    record, alarms = Record(), list[Alarm]()
    asked = [0.0]

    def rising(trajectory: Trajectory) -> list[float]:
        asked[0] += 1.0
        return [asked[0]] * len(trajectory.turns)

    swap = RewardSwap(4, 4, 1 / 4, on_hacking=on_hacking)
    run_rspo(
        trainer_of(ChangedPlay(by_index), record),
        swap,
        SIZES,
        updates=Budget(8),
        dense=CallableReward(rising, "rising"),
        watch=HackingWatch("rising", alarms.append, ALWAYS),
    )
    return record, alarms


def test_an_alarm_is_reported_and_changes_nothing() -> None:
    record, alarms = hacked_run("report")
    assert alarms
    phases = [phase for phase, _, _ in record.rows]
    assert phases == (["explore"] * 4 + ["harvest"] + ["learn"] * 4) * 2


def test_an_alarm_ends_phase_one_and_halves_the_phases() -> None:
    record, alarms = hacked_run("shorten")
    assert alarms
    phases = [phase for phase, _, _ in record.rows]
    assert phases[:6] == ["explore"] * 3 + ["harvest"] + ["learn"] * 2
    assert phases.count("learn") == 8


def test_loops_without_an_alarm_lengthen_the_phases_again() -> None:
    record = Record()
    swap = RewardSwap(2, 2, 1 / 4, on_hacking="shorten", phases=PhaseLengths(healthy_loops=1))
    run_rspo(trainer_of(ChangedPlay(by_index), record), swap, SIZES, updates=4)
    assert [p for p, _, _ in record.rows] == (["explore"] * 2 + ["harvest"] + ["learn"] * 2) * 2


def test_the_detector_watches_a_run_under_the_dense_reward_alone() -> None:
    seen: list[list[Group]] = []

    class Spy(HackingWatch):
        def see(self, groups: Sequence[Group]) -> bool:
            seen.append(list(groups))
            return super().see(groups)

    trainer = trainer_of(ChangedPlay(by_index))
    watch = Spy("progress", lambda _: None)
    on_policy(
        trainer, budget=Budget(2), tasks=2, group_size=4, reward=ProgressReward(), watch=watch
    )
    assert [len(groups) for groups in seen] == [2, 2]
    assert set(seen[0][0].rewards) == {"progress"}


def test_watchers_see_the_batches_before_they_are_scored_and_all_of_a_loop() -> None:
    order: list[str] = []
    loops: list[int] = []

    class Source(ProgressReward):
        def score(self, group: Group) -> torch.Tensor:
            order.append("scored")
            return super().score(group)

    run_rspo(
        trainer_of(MadePlay()),
        RewardSwap(1, 1, 1 / 4),
        SIZES,
        updates=2,
        dense=Source(),
        before_scoring=lambda groups: order.append(f"{len(groups)} seen"),
        after_loop=lambda groups: loops.append(len(groups)),
    )
    assert order == (["3 seen"] + ["scored"] * 3) * 4  # explore and harvest of two loops
    assert loops == [9, 9]  # explored, harvested, learned


def test_costs_of_the_phases_add_up_to_the_runs() -> None:
    record = Record()
    trainer = trainer_of(MadePlay(), record)
    run_rspo(trainer, RewardSwap(2, 1, 1 / 4), SIZES, updates=2)
    phases = trainer.accounting.as_dict()
    assert set(phases) == {"explore", "harvest", "learn"}
    for count in ("environment_steps", "generated_tokens", "trained_tokens"):
        assert sum(phase[count] for phase in phases.values()) == trainer.counters[count]
    assert [phases[name]["updates"] for name in ("explore", "harvest", "learn")] == [4, 0, 2]
    assert phases["harvest"]["trained_tokens"] == 0
    steps = [m["rollout/environment_steps"] for _, m, _ in record.rows]
    assert phases["harvest"]["environment_steps"] == steps[2] + steps[6]
    seconds = sum(phase["seconds"] for phase in phases.values())
    assert seconds == pytest.approx(record.rows[-1][1]["seconds"])


def fails_sometimes(trajectory: Trajectory) -> list[float]:
    if trajectory.index == 1:
        raise KeyError("gone")
    return [float(trajectory.index)] * len(trajectory.turns)


def test_trajectories_that_cannot_be_scored_are_left_out_and_counted() -> None:
    record = Record()
    trainer = trainer_of(MadePlay(), record, on_failed_reward="drop")
    source = CallableReward(fails_sometimes, "mine")
    run_rspo(trainer, RewardSwap(1, 1, 1 / 4), SIZES, updates=1, dense=source)
    explored, harvested, learned = (groups for _, _, groups in record.rows)
    assert all(len(group.trajectories) == 3 for group in [*explored, *harvested])
    assert all(len(group.trajectories) == 4 for group in learned)
    assert record.metric("dropped_rewards") == [6.0]
    strict = trainer_of(MadePlay())
    with pytest.raises(RunStoppedError, match="'mine' of task 'task-"):
        run_rspo(strict, RewardSwap(1, 1, 1 / 4), SIZES, updates=1, dense=source)


def test_a_run_of_which_no_reward_is_left_stops() -> None:
    def broken(trajectory: Trajectory) -> list[float]:
        return [float("inf")] * len(trajectory.turns)

    trainer = trainer_of(MadePlay(), on_failed_reward="drop")
    with pytest.raises(RunStoppedError, match="none is left to learn from"):
        trainer.update(trainer.collect("learn", 2, 4), CallableReward(broken), "learn")
