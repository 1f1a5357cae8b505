"""What every reward source must do, whichever it is."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from made import made_trajectory, small_llama
from rewardswap.rewards.base import RewardSource
from rewardswap.rewards.config import PRESETS
from rewardswap.rewards.novelty import NoveltyReward
from rewardswap.rewards.outcome import OutcomeReward
from rewardswap.rewards.process import ProcessRewardModel
from rewardswap.rewards.rule import ProgressReward
from rewardswap.types import Group, Task


def fitted(preset: str) -> ProcessRewardModel:
    """A process reward model fitted on a few made-up trajectories."""
    model = ProcessRewardModel(small_llama(), replace(PRESETS[preset], epochs=2))
    model.fit([made_trajectory(f"t{n // 4}", n, ((3, 2), (2, 3)), float(n % 2)) for n in range(80)])
    return model


SOURCES: dict[str, Callable[[], RewardSource]] = {
    "outcome": OutcomeReward,
    "progress": ProgressReward,
    "novelty": NoveltyReward,
    "process, action": lambda: fitted("action"),
    "process, after_observation": lambda: fitted("after_observation"),
}


@pytest.fixture(scope="module", params=SOURCES)
def source(request: pytest.FixtureRequest) -> RewardSource:
    return SOURCES[request.param]()


def group_of(order: tuple[int, ...] = (0, 1, 2)) -> Group:
    shapes = (((3, 2),), ((2, 2), (1, 1), (3, 2)), ((3, 1), (2, 2)))
    members = [made_trajectory("a", n, shapes[n], float(n == 1)) for n in order]
    return Group(Task("a", "family"), tuple(members))


def test_scores_are_finite_float32_and_0_where_there_is_no_turn(source: RewardSource) -> None:
    group = group_of()
    scores = source.score(group)
    assert scores.dtype == torch.float32
    assert scores.shape == (3, 3)
    assert torch.isfinite(scores).all()
    assert float(scores[~group.turn_mask].abs().sum()) == 0


def test_siblings_do_not_change_each_others_scores(source: RewardSource) -> None:
    scores = source.score(group_of())
    permuted = source.score(group_of((2, 0, 1)))
    torch.testing.assert_close(permuted, scores[[2, 0, 1]], atol=1e-5, rtol=0)
    alone = source.score(group_of((1,)))
    torch.testing.assert_close(alone[0], scores[1], atol=1e-5, rtol=0)


def test_the_same_group_scores_the_same_bits(source: RewardSource) -> None:
    assert torch.equal(source.score(group_of()), source.score(group_of()))
