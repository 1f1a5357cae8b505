from dataclasses import replace

import pytest
import torch

from rewardswap.rewards.config import PRESETS, ProcessRewardConfig
from rewardswap.rewards.training import (
    RewardHead,
    outcome_weights,
    padded,
    prefix_loss,
    split_by_task,
    total_loss,
)

REWARD = torch.tensor([[0.5, 0.25], [0.5, 0.0]])
MASK = torch.tensor([[True, True], [True, False]])
TARGET = torch.tensor([1.0, 0.0])


def test_total_loss_by_hand() -> None:
    # ((.75 - 1)^2 + (.5 - 0)^2) / 2 = (.0625 + .25) / 2
    assert total_loss(REWARD, TARGET, torch.ones(2)).item() == 0.15625
    # weights 3 and 1: (.1875 + .25) / 4
    assert total_loss(REWARD, TARGET, torch.tensor([3.0, 1.0])).item() == 0.109375


def test_prefix_loss_by_hand() -> None:
    # prefixes .5 -> 1, .75 -> 1, .5 -> 0: (.25 + .0625 + .25) / 3
    assert prefix_loss(REWARD, MASK, TARGET, torch.ones(2)).item() == 0.1875
    # weights 1 and 2: (.25 + .0625 + 2 * .25) / 4
    assert prefix_loss(REWARD, MASK, TARGET, torch.tensor([1.0, 2.0])).item() == 0.203125


def test_prefix_loss_ignores_padding() -> None:
    wide = torch.cat([REWARD, torch.zeros(2, 3)], dim=1)
    mask = torch.cat([MASK, torch.zeros(2, 3).bool()], dim=1)
    weight = torch.tensor([1.0, 2.0])
    narrow = prefix_loss(REWARD, MASK, TARGET, weight)
    assert prefix_loss(wide, mask, TARGET, weight).item() == narrow.item()


def test_both_losses_agree_on_single_turns() -> None:
    reward, weight = torch.tensor([[0.3], [-0.2]]), torch.tensor([1.0, 2.0])
    total = total_loss(reward, TARGET, weight)
    assert prefix_loss(reward, torch.ones(2, 1).bool(), TARGET, weight).item() == total.item()


def test_padded_puts_turns_in_rows() -> None:
    assert padded(torch.tensor([1.0, 2.0, 3.0]), (1, 2)).tolist() == [[1, 0], [2, 3]]


def test_each_outcome_carries_half_of_the_loss() -> None:
    success, lengths = [True, False, False, False], [2, 3, 3, 4]
    # trajectories: 1 success and 3 failures of 4, so 4/2 and 4/6
    assert outcome_weights(success, lengths, PRESETS["action"]) == (2.0, 4 / 6)
    # prefixes: 2 of successes and 10 of failures, of 12, so 12/4 and 12/20
    assert outcome_weights(success, lengths, PRESETS["after_observation"]) == (3.0, 0.6)
    off = replace(PRESETS["action"], balance="none")
    assert outcome_weights(success, lengths, off) == (1.0, 1.0)


@pytest.mark.parametrize(("success", "word"), [(True, "succeeded"), (False, "failed")])
def test_one_kind_of_outcome_cannot_be_fitted(success: bool, word: str) -> None:
    with pytest.raises(ValueError, match=f"all 3 trajectories {word}"):
        outcome_weights([success] * 3, [1, 1, 1], PRESETS["action"])


def test_no_task_is_in_two_parts_and_order_does_not_matter(revealing) -> None:
    config = ProcessRewardConfig()
    split = split_by_task(revealing, config)
    parts = [split.training, split.validation, split.held_out]
    tasks = [{revealing[n].task.id for n in part} for part in parts]
    assert [len(part) for part in tasks] == [26, 6, 8]
    assert len(set.union(*tasks)) == 40
    assert sorted(n for part in parts for n in part) == list(range(len(revealing)))
    backwards = split_by_task(revealing[::-1], config)
    assert {revealing[::-1][n].task.id for n in backwards.held_out} == tasks[2]
    other = split_by_task(revealing, replace(config, seed=1))
    assert {revealing[n].task.id for n in other.held_out} != tasks[2]


def test_three_tasks_are_the_fewest(make) -> None:
    split = split_by_task([make([5, 5], task=name) for name in "abc"], ProcessRewardConfig())
    assert [len(p) for p in (split.training, split.validation, split.held_out)] == [1, 1, 1]
    with pytest.raises(ValueError, match="at least 3 tasks"):
        split_by_task([make([5, 5], task=name) for name in "aba"], ProcessRewardConfig())


def test_head_standardises_and_stays_inside_one() -> None:
    head = RewardHead(2, 4)
    values = torch.tensor([[100.0, 7.0], [300.0, 7.0]])
    head.standardize_by(values)
    assert head.mean.tolist() == [200.0, 7.0]
    assert head.deviation.tolist() == [100.0, 1.0]
    assert (head(values).abs() < 1).all()


@pytest.mark.parametrize(
    ("field", "value"),
    [("epochs", 0), ("noise", -0.1), ("learning_rate", 0.0), ("held_out_share", 0.9)],
)
def test_settings_that_cannot_work_are_refused(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=field):
        replace(ProcessRewardConfig(), **{field: value})
