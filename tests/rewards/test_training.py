from dataclasses import replace

import pytest
import torch

from rewardswap.rewards import training
from rewardswap.rewards.config import PRESETS, ProcessRewardConfig
from rewardswap.rewards.features import TurnFeatures
from rewardswap.rewards.losses import fit_loss
from rewardswap.rewards.training import (
    Split,
    balance_weights,
    fit_head,
    padded,
    split_by_task,
    target_of,
)


def test_padded_puts_turns_in_rows() -> None:
    assert padded(torch.tensor([1.0, 2.0, 3.0]), (1, 2)).tolist() == [[1, 0], [2, 3]]


def test_each_end_carries_half_of_the_loss() -> None:
    targets, lengths = [1.0, 0.0, 0.0, 0.0], [2, 3, 3, 4]
    # trajectories: 1 success and 3 failures of 4, so 4/2 and 4/6
    assert balance_weights(targets, lengths, PRESETS["action"]) == (2.0, 4 / 6)
    # prefixes: 2 of successes and 10 of failures, of 12, so 12/4 and 12/20
    assert balance_weights(targets, lengths, PRESETS["after_observation"]) == (3.0, 0.6)
    off = replace(PRESETS["action"], balance="none")
    assert balance_weights(targets, lengths, off) == (1.0, 1.0)


def test_a_score_between_counts_for_both_ends() -> None:
    targets, lengths = [1.0, 0.5, 0.5, 0.0, 0.0], [1, 2, 4, 2, 1]
    # trajectories: 1 + .5 + .5 = 2 of successes and 3 of failures, of 5, so 5/4 and 5/6
    assert balance_weights(targets, lengths, PRESETS["action"]) == (1.25, 5 / 6)
    # prefixes: 1 + 1 + 2 = 4 of successes and 6 of failures, of 10, so 10/8 and 10/12
    one, zero = balance_weights(targets, lengths, PRESETS["after_observation"])
    assert (one, zero) == (1.25, 10 / 12)
    # each end has half of all weight, and all of it is as without balance: 5 and 10
    assert sum(c * y * one for c, y in zip(lengths, targets, strict=True)) == pytest.approx(5)
    assert sum(c * (1 - y) * zero for c, y in zip(lengths, targets, strict=True)) == 5


@pytest.mark.parametrize(("value", "shown"), [(1.0, "1"), (0.0, "0"), (0.25, "0.25")])
def test_targets_that_are_all_equal_cannot_be_fitted(value: float, shown: str) -> None:
    for config in PRESETS.values():
        for balance in ("outcome", "none"):
            with pytest.raises(ValueError, match=f"all 3 trajectories have outcome {shown}:"):
                balance_weights([value] * 3, [1, 1, 1], replace(config, balance=balance))


def test_the_target_is_what_the_settings_say(make) -> None:
    trajectory = replace(make([5, 5], success=True), outcome=0.75, task_score=0.5)
    found = [
        target_of(trajectory, replace(ProcessRewardConfig(), target=target))
        for target in ("outcome", "success", "task_score")
    ]
    assert found == [0.75, 1.0, 0.5]


@pytest.mark.parametrize("loss_on", ["total", "prefixes"])
def test_a_head_is_fitted_to_scores_without_any_success(make, loss_on: str) -> None:
    config = replace(
        ProcessRewardConfig(), target="task_score", loss_on=loss_on, epochs=80, hidden_size=8
    )
    scores = [0.1, 0.6] * 12
    episodes = [
        replace(make([5, 5], task=f"task-{n}"), task_score=score) for n, score in enumerate(scores)
    ]
    features = TurnFeatures(torch.tensor(scores)[:, None], (1,) * len(scores))
    split = split_by_task(episodes, config)
    head, _ = fit_head(episodes, features, split, replace(config, learning_rate=0.03))
    fitted = head(torch.tensor([[0.1], [0.6]])).tolist()
    assert fitted == pytest.approx([0.1, 0.6], abs=0.1)
    with pytest.raises(ValueError, match="have outcome 0"):
        fit_head(episodes, features, split, replace(config, target="outcome"))


def test_graded_targets_weigh_as_mixtures_in_the_fit(make, monkeypatch) -> None:
    seen: list[list[float]] = []

    def watched(output, lengths, target, weight, task, config):
        seen.append(weight.tolist())
        return fit_loss(output, lengths, target, weight, task, config)

    monkeypatch.setattr(training, "fit_loss", watched)
    scores = [0.0, 0.5, 1.0]
    episodes = [
        replace(make([5, 5], task=f"task-{n}"), task_score=score) for n, score in enumerate(scores)
    ]
    features = TurnFeatures(torch.tensor(scores)[:, None], (1, 1, 1))
    config = replace(ProcessRewardConfig(), target="task_score", epochs=1)
    split = Split(training=(0, 1, 2), validation=(1,), held_out=())
    fit_head(episodes, features, split, config)
    # 1.5 of successes and 1.5 of failures of 3: both ends weigh 1, and so does their mixture
    assert [sorted(weights) for weights in seen] == [[1, 1, 1], [1]]
    seen.clear()
    fit_head(episodes, features, replace(split, training=(0, 1)), config)
    # .5 of successes and 1.5 of failures of 2, so 2 and 2/3, and their mean 4/3
    assert sorted(seen[0]) == pytest.approx([2 / 3, 4 / 3])


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


def test_a_positive_weight_multiplies_what_balance_gives() -> None:
    targets, lengths = [1.0, 0.0, 0.0, 0.0], [2, 3, 3, 4]
    # balanced 4/2 and 4/6, and the success three times that; unbalanced 1 and 1
    heavy = replace(PRESETS["action"], positive_weight=3.0)
    assert balance_weights(targets, lengths, heavy) == (6.0, 4 / 6)
    off = replace(heavy, balance="none")
    assert balance_weights(targets, lengths, off) == (3.0, 1.0)


def test_pairs_are_drawn_in_whole_tasks(make, monkeypatch) -> None:
    seen: list[list[int]] = []

    def watched(output, lengths, target, weight, task, config):
        seen.append(task.tolist())
        return fit_loss(output, lengths, target, weight, task, config)

    monkeypatch.setattr(training, "fit_loss", watched)
    episodes = [make([5, 5], task=f"task-{n % 6}", index=n, success=n % 4 == 0) for n in range(18)]
    values = torch.arange(18.0)[:, None]
    config = replace(ProcessRewardConfig(), loss="pairwise", batch_size=4, epochs=2, patience=2)
    split = Split(training=tuple(range(18)), validation=tuple(range(18)), held_out=())
    fit_head(episodes, TurnFeatures(values, (1,) * 18), split, config)
    # three siblings each: two tasks reach a batch of 4, so three batches, then all for validation
    assert [len(batch) for batch in seen] == [6, 6, 6, 18] * 2
    for batch in seen:
        assert all(batch.count(number) == 3 for number in batch)
    assert sorted(n for batch in seen[:3] for n in batch) == sorted(list(range(6)) * 3)
    assert seen[:3] != seen[4:7]


def test_pairs_need_both_kinds_for_early_stopping(make) -> None:
    episodes = [make([5, 5], task=f"task-{n}", success=n == 0) for n in range(4)]
    features = TurnFeatures(torch.arange(4.0)[:, None], (1,) * 4)
    split = Split(training=(0, 1), validation=(2, 3), held_out=())
    with pytest.raises(ValueError, match="2 trajectories kept for early stopping have one outcome"):
        fit_head(episodes, features, split, replace(ProcessRewardConfig(), loss="margin"))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("epochs", 0),
        ("weight_decay", -0.1),
        ("learning_rate", 0.0),
        ("held_out_share", 0.9),
        ("positive_weight", 0.0),
        ("positive_weight", float("nan")),
        ("backbone", ""),
    ],
)
def test_settings_that_cannot_work_are_refused(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=field):
        replace(ProcessRewardConfig(), **{field: value})
