"""The dense reward of a run: what is made of its settings."""

from typing import Any

import pytest
import torch

from made import made_group
from rewardswap.configuration import Run
from rewardswap.dense import DenseReward
from rewardswap.errors import RunStoppedError
from rewardswap.loops.settings import RewardSwap
from rewardswap.rewards.noise import NoisyReward
from rewardswap.rewards.outcome import OutcomeReward
from rewardswap.rewards.sources import RewardConfig
from rewardswap.task_stream import derived_seed
from rewardswap.types import Trajectory

GROUP = made_group("a", (0.0, 1.0, 0.0))


def dense(seed: int = 0, swap: RewardSwap | None = None, **settings: Any) -> DenseReward:
    run = Run("x", seed=seed, swap=swap or RewardSwap(), reward=RewardConfig(**settings))
    return DenseReward(run, 10, None)


def test_nothing_is_made_where_nothing_learns_under_it() -> None:
    made = dense(swap=RewardSwap(explore_steps=0), dense="progress")
    assert made.source is made.in_force is made.scores(GROUP.trajectories) is None
    assert not made.to_fit


def test_a_turn_costs_its_share_of_the_limit() -> None:
    made = dense(dense="turn_counter")
    assert made.in_force is made.source is not None
    torch.testing.assert_close(made.source.score(GROUP), -0.1 * GROUP.turn_mask.float())


def test_the_outcome_is_added_where_that_is_asked() -> None:
    made = dense(dense="turn_counter", add_outcome=True)
    assert made.in_force is not None
    assert made.source is not None
    expected = made.source.score(GROUP) + OutcomeReward().score(GROUP)
    assert torch.equal(made.in_force.score(GROUP), expected)
    assert made.in_force.name == "turn_counter"


def test_noise_is_seeded_by_the_run() -> None:
    for seed in (0, 7):
        source = dense(seed, dense="progress", noise=0.1).source
        assert isinstance(source, NoisyReward)
        assert source.seed == derived_seed(seed, "reward noise")
        assert source.deviation == 0.1


def test_only_novelty_remembers_what_is_played() -> None:
    made = dense(dense="novelty")
    assert made.source is not None
    before = made.source.score(GROUP)
    made.before_scoring([GROUP, GROUP, GROUP, GROUP])
    assert float(made.source.score(GROUP).max()) <= 0.5 < float(before.max())
    dense(dense="progress").before_scoring([GROUP])


def test_a_reader_is_told_what_cannot_be_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(trajectory: Trajectory) -> list[float]:
        return [float("nan") if trajectory.index == 1 else 0.5] * len(trajectory.turns)

    monkeypatch.setattr("rewardswap.rewards.sources.named_function", lambda _: function)
    found = dense(dense="own:function", on_failure="drop").scores(GROUP.trajectories)
    assert found == [[0.5, 0.5], None, [0.5, 0.5, 0.5]]
    with pytest.raises(RunStoppedError, match="'function' of task 'a' is not finite in episode 1"):
        dense(dense="own:function").scores(GROUP.trajectories)


def test_only_an_online_reward_is_refitted() -> None:
    made = dense(dense="progress")
    assert made.refit([GROUP]) is None

    class Model:
        head = None

    made.process_model = Model()  # type: ignore[assignment]
    assert made.refit([GROUP]) is None  # a model that is not online stays as it is
