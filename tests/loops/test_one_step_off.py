"""One step off: a batch is played while the policy learns from the one before, and corrected."""

import copy
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import rewardswap.stage
from killed import Kill, elsewhere, execute, record
from made import MadePlay, made_trajectory, small_llama, small_policy
from rewardswap.algorithm import Algorithm
from rewardswap.by_hand import make_parts
from rewardswap.checkpoints.config import CheckpointConfig
from rewardswap.collection import Collected
from rewardswap.configuration import Run
from rewardswap.env_config.alfworld import Alfworld
from rewardswap.loops.budget import Budget
from rewardswap.loops.settings import Batch, RewardSwap
from rewardswap.methods.dapo import DAPO
from rewardswap.methods.grpo import GRPO
from rewardswap.methods.ppo import PPO
from rewardswap.recipes import demo
from rewardswap.rewards.outcome import OutcomeReward
from rewardswap.rewards.sources import RewardConfig
from rewardswap.rollout.ahead import Background
from rewardswap.rollout.config import RolloutConfig
from rewardswap.rollout.episodes import EpisodeRequest, Played
from rewardswap.types import Group, Trajectory
from training import ChangedPlay, Record, by_index, on_policy, parameters, run_rspo, trainer_of

RUN = replace(
    demo(),
    env=Alfworld(turn_limit=12, generated_games=40, evaluation_tasks=4),
    batch=Batch(tasks=4, group_size=4),
    swap=RewardSwap(2, 3, 1 / 4, harvest="both"),
    reward=RewardConfig(dense="novelty"),
    rollout=RolloutConfig(one_step_off=True),
    budget=4,
)


# that the correction is right

CONTEXT = (3, 4, 5)
SAMPLED = {7: 0.5, 8: 0.25, 9: 0.25}
"""pi_behavior of the only actions that anything is gained or lost by."""
GAINS = {7: 0.4, 8: -0.7, 9: 0.9}


def said(token: int, index: int) -> Trajectory:
    """One turn of one token, of the probability that it was sampled with."""
    made = made_trajectory("a", index, ((3, 1),), outcome=float(index % 2))
    turn = replace(
        made.turns[0],
        context_ids=np.array(CONTEXT),
        action_ids=np.array([token]),
        logprobs=np.array([np.log(SAMPLED[token])], dtype=np.float32),
    )
    return replace(made, turns=(turn,))


def gained(groups: Sequence[Group]) -> list[Tensor]:
    """The advantage of each action, known."""
    return [
        torch.tensor([[GAINS[int(t.turns[0].action_ids[0])]] for t in group.trajectories])
        for group in groups
    ]


def moved(version: int) -> Tensor:
    """How one step of plain gradient ascent moves the policy, of batches of the version before."""
    policy = small_policy(make_optimizer=lambda m: torch.optim.SGD(m.parameters(), lr=1.0))
    policy.gradient_clip = 1e9
    policy.version = 1
    before = parameters(policy).clone()
    # each action as often as pi_behavior says: the batch's mean is the expectation, exactly
    members = tuple(said(token, n) for n, token in enumerate((7, 7, 8, 9)))
    trainer = trainer_of(MadePlay(), policy=policy, algorithm=Algorithm(advantage=gained))
    seen = Collected(
        [Group(members[0].task, members)], {"seconds": 0.0}, group_size=4, version=version
    )
    trainer.update(seen, OutcomeReward(), "learn")
    return parameters(policy) - before


def policy_gradient(weights: Mapping[int, Tensor] | None) -> Tensor:
    """sum_a w(a) A(a) grad log pi(a), w(a) = pi(a) unless `weights` are given."""
    model = small_llama()
    logprob = model(torch.tensor([CONTEXT])).logits[0, -1].log_softmax(-1)
    weight = {a: logprob[a].exp().detach() for a in GAINS} if weights is None else weights
    sum(weight[a] * gain * logprob[a] for a, gain in GAINS.items()).backward()  # type: ignore[union-attr]
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def test_a_corrected_batch_has_the_expected_gradient_of_the_policy_that_learns() -> None:
    exact = policy_gradient(None)
    torch.testing.assert_close(moved(version=0), exact, rtol=1e-4, atol=1e-6)


def test_taken_for_its_own_the_same_batch_has_the_gradient_of_another_policy() -> None:
    wrong = policy_gradient({a: torch.tensor(p) for a, p in SAMPLED.items()})
    torch.testing.assert_close(moved(version=1), wrong, rtol=1e-4, atol=1e-6)
    assert (wrong - policy_gradient(None)).abs().max() > 0.01


# which batch is played when, by which version


class Ahead(ChangedPlay):
    """Plays at once what is begun, and remembers when it was taken."""

    def __init__(self, change: Callable[[Trajectory], Trajectory] = by_index) -> None:
        super().__init__(change)
        self.log: list[str] = []

    def __call__(self, *words: Any) -> Played:
        self.log.append(f"play {words[2]}")
        return super().__call__(*words)

    def begin(
        self, requests: Sequence[EpisodeRequest], seed: int, version: int
    ) -> Callable[[], Played]:
        self.log.append(f"begin {version}")
        played = super().__call__(requests, seed, version, None)

        def take() -> Played:
            self.log.append("take")
            return played

        return take


def off_by_one(play: Ahead, record: Record | None = None, **settings: Any) -> Any:
    return trainer_of(play, record, begin=play.begin, **settings)


def test_every_batch_but_the_first_is_begun_before_the_update_in_front_of_it() -> None:
    play, seen = Ahead(), Record()
    trainer = off_by_one(play, seen)
    on_policy(trainer, tasks=4, group_size=2, budget=Budget(4), reward=OutcomeReward())
    assert play.log == ["play 0", "begin 0", "take", "begin 1", "take", "begin 2", "take"]
    aged = [("aged_effective_sample_size" in m, "engine_gap_max" in m) for _, m, _ in seen.rows]
    assert aged == [(False, True), (True, False), (True, False), (True, False)]
    steps = sum(len(t.turns) for _, _, groups in seen.rows for g in groups for t in g.trajectories)
    assert seen.rows[-1][1]["environment_steps"] == steps  # counted once, all of them


def test_no_episode_is_played_twice() -> None:
    """Six tasks in batches of four: the second batch has tasks of the first, by one version."""
    play = Ahead()
    on_policy(off_by_one(play), tasks=4, group_size=2, budget=Budget(5), reward=OutcomeReward())
    played = Counter(
        (seed, version, *episode) for episodes, seed, version in play.calls for episode in episodes
    )
    assert len(played) == 5 * 4 * 2
    again = {(task, index) for episodes, _, _ in play.calls[:2] for task, index in episodes}
    assert max(index for _, index in again) == 3


def test_what_a_filter_asks_for_further_is_neither_of_the_batches() -> None:
    play, seen = Ahead(lambda trajectory: trajectory), Record()
    method = DAPO(collections=3)
    on_policy(
        off_by_one(play, seen, algorithm=method.algorithm()),
        tasks=5,
        group_size=2,
        budget=Budget(3),
        reward=OutcomeReward(),
    )
    assert max(seen.metric("collections")) > 1
    played = Counter(
        (seed, version, *episode) for episodes, seed, version in play.calls for episode in episodes
    )
    assert set(played.values()) == {1}


def test_phases_of_rspo_begin_on_policy_and_leave_no_batch_behind() -> None:
    play, seen = Ahead(), Record()
    trainer = off_by_one(play, seen)
    run_rspo(trainer, RewardSwap(2, 3, 1 / 4, harvest="during"), Batch(4, 2), 6)
    loop = ["play 0", "begin 0", "take", "play 0", "begin 0", "take", "begin 1", "take"]
    assert play.log[:8] == loop
    assert play.log[8:] == [w.replace("0", "3").replace("1", "4") for w in loop]
    phases = [phase for phase, _, _ in seen.rows]
    assert phases.count("explore") == 4 and phases.count("learn") == 6
    aged = ["aged_effective_sample_size" in m for p, m, _ in seen.rows if p != "harvest"]
    assert aged == [False, True, False, True, True] * 2


def test_what_is_stored_of_an_older_batch_has_the_log_probs_that_it_was_sampled_with() -> None:
    play, seen = Ahead(), Record()
    trainer = off_by_one(play, seen)
    run_rspo(trainer, RewardSwap(2, 2, 1 / 4, harvest="during"), Batch(4, 2), 2)
    first, second = [groups for phase, _, groups in seen.rows if phase == "harvest"]
    for group in second:
        assert torch.equal(group.columns["behavior_logprob"], group.sampled_logprob)
    assert not torch.equal(first[0].columns["behavior_logprob"], first[0].sampled_logprob)


def test_a_budget_of_steps_learns_from_all_that_was_played() -> None:
    for amount in range(1, 60, 7):
        play, seen = Ahead(), Record()
        on_policy(
            off_by_one(play, seen),
            tasks=3,
            group_size=2,
            budget=Budget(amount, "environment_steps"),
            reward=OutcomeReward(),
        )
        learned = sum(len(groups) for _, _, groups in seen.rows)
        assert learned == 3 * len(play.calls)


def test_a_critic_learns_one_step_off_too() -> None:
    play, seen = Ahead(), Record()
    on_policy(
        off_by_one(play, seen, algorithm=PPO().algorithm()),
        tasks=3,
        group_size=2,
        budget=Budget(3),
        reward=OutcomeReward(),
    )
    aged = [metrics for _, metrics, _ in seen.rows if "aged_effective_sample_size" in metrics]
    assert len(aged) == 2 and all(metrics["value_loss"] > 0 for metrics in aged)


def test_without_it_nothing_can_be_begun() -> None:
    trainer = trainer_of(ChangedPlay(by_index))
    seen = trainer.collect("learn", 2, 2)
    with pytest.raises(ValueError, match="give `begin`"):
        trainer.begin("learn", 2, seen)


# in the background, by the engine


def bits(run: Run) -> tuple[Tensor, list[dict[str, Any]]]:
    """Parameters and metrics of a run, without what a clock says."""
    with make_parts(run) as parts:
        parts.loop().run()
        metrics = [{n: v for n, v in row.items() if "second" not in n} for row in parts.record]
        return parameters(parts.trainer.policy), metrics


def at_once(self: Background, play: Callable[[Callable[[], None]], Played]) -> "Future[Played]":
    """Play before anything is learned, in the same thread."""
    found: Future[Played] = Future()
    found.set_result(play(lambda: None))
    return found


def slowly(play: Any) -> Any:
    """Every turn takes a while: the update has ended long before."""

    def played(*words: Any, between_turns: Callable[[], None], **settings: Any) -> Played:
        def pause() -> None:
            time.sleep(0.05)
            between_turns()

        found: Played = play(*words, between_turns=pause, **settings)
        return found

    return played


@pytest.mark.parametrize("workers", [0, 2])
def test_in_the_background_it_is_the_same_to_the_bit(
    workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = replace(RUN, rollout=replace(RUN.rollout, workers=workers))
    found, metrics = bits(run)
    name = "aged_effective_sample_size"
    aged = [row[name] for row in metrics if row["phase"] == "learn" and name in row]
    assert len(aged) == 2  # of updates 2 and 3
    assert all(0.9 < size < 1 for size in aged)
    with monkeypatch.context() as patch:
        patch.setattr(rewardswap.stage, "play", slowly(rewardswap.stage.play))
        later, same = bits(run)
    assert torch.equal(later, found) and same == metrics
    monkeypatch.setattr(Background, "begin", at_once)
    sooner, same = bits(run)
    assert torch.equal(sooner, found) and same == metrics


def test_what_is_played_has_the_log_probs_of_the_version_on_its_stamp() -> None:
    """Each trajectory of an older batch, scored by a copy of the policy that it names."""
    run = replace(RUN, loop="on_policy")
    with make_parts(run) as parts:
        trainer, copies = parts.trainer, {}
        loop = parts.loop()
        checked = 0
        while not loop.finished:
            copies[trainer.policy.version] = copy.deepcopy(trainer.policy.model)
            loop.step()
            for group in loop.ahead.groups if loop.ahead else ():
                for trajectory in group.trajectories:
                    assert trajectory.policy_version == trainer.policy.version - 1
                    wanted = scored(copies[trajectory.policy_version], trajectory)
                    torch.testing.assert_close(
                        torch.from_numpy(trajectory.turns[0].logprobs), wanted, rtol=0, atol=1e-4
                    )
                    checked += 1
        assert checked == 3 * 16


def scored(model: Any, trajectory: Trajectory) -> Tensor:
    """log-probs of the first action."""
    turn = trajectory.turns[0]
    tokens = torch.from_numpy(np.concatenate([turn.context_ids, turn.action_ids]))
    with torch.no_grad():
        logprob = model(tokens[None]).logits[0].log_softmax(-1)
    start = len(turn.context_ids)
    places = torch.arange(start - 1, len(tokens) - 1)
    return logprob[places, tokens[start:]]


def test_a_loop_that_breaks_gives_up_what_is_played() -> None:
    with make_parts(replace(RUN, loop="on_policy")) as parts:
        trainer = parts.trainer
        seen = trainer.collect("learn", 4, 4)
        taken = trainer.begin("learn", 4, seen)
    with pytest.raises((Exception, KeyboardInterrupt)) as stop:
        taken()
    assert type(stop.value).__name__ in ("StopAskedError", "CancelledError")


def test_a_run_that_is_killed_goes_on_one_step_off(tmp_path: Path) -> None:
    run = replace(RUN, swap=RewardSwap(2, 2, 1 / 4), budget=2, checkpoint=CheckpointConfig(every=1))
    whole = elsewhere(run, tmp_path / "whole")
    assert execute(whole) == 0
    killed = elsewhere(run, tmp_path / "killed")
    for count, kill in enumerate((Kill("optimizer step", 2), Kill("record", 2))):
        assert execute(killed, resume=count > 0, kill=kill) == -9
    assert execute(killed, resume=True) == 0
    assert record(tmp_path / "killed") == record(tmp_path / "whole")


# settings


def test_settings_that_do_nothing_or_clash() -> None:
    with pytest.raises(ValueError, match="sleeps does nothing with one_step_off"):
        RolloutConfig(engine="vllm", sleeps=True, one_step_off=True)
    with pytest.raises(ValueError, match="one_step_off does nothing where a phase has one update"):
        replace(RUN, swap=RewardSwap(1, 1, 1 / 4))
    with pytest.raises(ValueError, match="on_hacking shorten ends phase 1 at once"):
        replace(RUN, swap=RewardSwap(3, 3, 1 / 4, on_hacking="shorten"))


def test_settings_of_older_rows_count_without_replay() -> None:
    method = GRPO(importance_cap="truncate", importance_maximum=1.5)
    run = replace(RUN, loop="on_policy", method=method)
    assert run.method is method
    with pytest.raises(ValueError, match="importance_cap does nothing without replayed rows"):
        replace(run, rollout=RolloutConfig())
