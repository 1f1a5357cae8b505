"""What is counted of rollouts."""

from dataclasses import replace

import pytest

from made import made_trajectory
from rewardswap.collection import rollout_metrics
from rewardswap.types import Group


def test_scores_are_averaged_beside_outcomes() -> None:
    won, lost = (made_trajectory("a", n, outcome=float(n == 0)) for n in range(2))
    group = Group(won.task, (won, replace(lost, task_score=0.5)))
    metrics = rollout_metrics([group])
    # outcomes 1 and 0, scores 1 and .5
    assert metrics["outcome_mean"] == metrics["success"] == 0.5
    assert metrics["task_score_mean"] == pytest.approx(0.75)
