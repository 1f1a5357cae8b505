import pytest
import torch

from rewardswap.methods.compat import (
    dynamic_sampling_rows,
    first_rows,
    penalise_invalid_actions,
    row_advantage,
    row_leave_one_out,
    row_returns,
)

# A 2-turn success and an 8-turn failure of one group, one row per turn.
SCORE = torch.tensor([10.0] * 2 + [0.0] * 8)
GROUP = torch.zeros(10).long()
TRAJECTORY = torch.tensor([4] * 2 + [7] * 8)


def test_row_statistics_have_the_turn_level_bias_that_the_library_avoids() -> None:
    # over rows the baseline is 10·2/10 = 2, not 5
    every = torch.ones(10).bool()
    centred = row_advantage(SCORE, GROUP, every, divide_by_std=False)
    assert centred.tolist() == [8.0] * 2 + [-2.0] * 8


def test_counting_first_rows_only_removes_the_bias() -> None:
    assert first_rows(TRAJECTORY).nonzero().flatten().tolist() == [0, 2]
    centred = row_advantage(SCORE, GROUP, first_rows(TRAJECTORY), divide_by_std=False)
    assert centred.tolist() == [5.0] * 2 + [-5.0] * 8


def test_a_single_row_keeps_its_score() -> None:
    alone = torch.tensor([10.0])
    one = torch.zeros(1).long()
    assert row_leave_one_out(alone, one).tolist() == [10.0]
    z = row_advantage(alone, one, torch.ones(1).bool(), divide_by_std=True)
    assert z.item() == pytest.approx(10 / (1 + 1e-6))


def test_a_group_without_a_counted_row_is_refused() -> None:
    with pytest.raises(ValueError, match="group 0 has no counted row"):
        row_advantage(SCORE, GROUP, torch.zeros(10).bool(), divide_by_std=True)


def test_row_returns_of_interleaved_trajectories() -> None:
    # trajectory 1: 0 + .5·2 = 1, 2; trajectory 0: 4 + .5·1 = 4.5, 1
    found = row_returns(torch.tensor([0.0, 4, 2, 1]), torch.tensor([1, 0, 1, 0]), 0.5)
    assert found.tolist() == [1.0, 4.5, 2.0, 1.0]


def test_the_penalty_of_an_invalid_action_stays_on_its_own_row() -> None:
    mask = torch.tensor([[True, True, False], [True, True, True]])
    score, step = penalise_invalid_actions(
        torch.zeros(2, 3), torch.tensor([1.0, 2.0]), mask, torch.tensor([False, True]), 0.25
    )
    assert score.tolist() == [[0.0, -0.25, 0.0], [0.0, 0.0, 0.0]]
    assert step.tolist() == [0.75, 2.0]


def test_dynamic_sampling_drops_groups_of_equal_rewards_unless_it_is_the_last_try() -> None:
    reward = torch.tensor([1.0, 1, 0, 1, 0, 0])
    assert dynamic_sampling_rows(reward, 2, last_try=False).tolist() == [2, 3]
    assert dynamic_sampling_rows(reward, 2, last_try=True).tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(ValueError, match="6 rows do not make groups of 4"):
        dynamic_sampling_rows(reward, 4, last_try=False)
