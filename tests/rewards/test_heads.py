from dataclasses import replace

import pytest
import torch

from rewardswap.rewards.config import ProcessRewardConfig
from rewardswap.rewards.heads import RewardHead, prefix_values, totals, turn_rewards

OUTPUT = torch.tensor([[0.5, 0.25, 0.75], [0.5, 0.0, 0.0]])
LENGTHS = torch.tensor([3, 1])


def test_head_standardises_and_stays_in_its_range() -> None:
    values = torch.tensor([[100.0, 7.0], [300.0, 7.0]])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        tanh = RewardHead(2, 4)
    sigmoid, linear = RewardHead(2, 4, "sigmoid"), RewardHead(2, 4, "linear")
    tanh.standardize_by(values)
    assert tanh.mean.tolist() == [200.0, 7.0]
    assert tanh.deviation.tolist() == [100.0, 1.0]
    for other in (sigmoid, linear):
        other.load_state_dict(tanh.state_dict())
    plain = linear(values)
    torch.testing.assert_close(tanh(values), plain.tanh())
    torch.testing.assert_close(sigmoid(values), 1 / (1 + (-plain).exp()))


def test_totals_by_hand() -> None:
    # .5 + .25 + .75; a third of it; the last one
    assert totals(OUTPUT, LENGTHS, "sum").tolist() == [1.5, 0.5]
    assert totals(OUTPUT, LENGTHS, "mean").tolist() == [0.5, 0.5]
    assert totals(OUTPUT, LENGTHS, "telescoping").tolist() == [0.75, 0.5]


def test_values_of_the_turns_so_far_by_hand() -> None:
    row = OUTPUT[:1]
    assert prefix_values(row, "sum").tolist() == [[0.5, 0.75, 1.5]]
    assert prefix_values(row, "mean").tolist() == [[0.5, 0.375, 0.5]]
    assert prefix_values(row, "telescoping").tolist() == [[0.5, 0.25, 0.75]]


def test_a_turns_reward_is_what_it_changes() -> None:
    row = OUTPUT[0]
    assert turn_rewards(row, "sum").tolist() == [0.5, 0.25, 0.75]
    # running means .5, .375, .5
    assert turn_rewards(row, "mean").tolist() == [0.5, -0.125, 0.125]
    # values 0 (before the first), .5, .25, .75
    assert turn_rewards(row, "telescoping").tolist() == [0.5, -0.25, 0.5]


@pytest.mark.parametrize("aggregation", ["sum", "mean", "telescoping"])
def test_rewards_sum_to_the_total_and_know_nothing_of_later_turns(aggregation) -> None:
    output = torch.rand(9, generator=torch.Generator().manual_seed(1))
    rewards = turn_rewards(output, aggregation)
    total = totals(output[None], torch.tensor([9]), aggregation)[0]
    torch.testing.assert_close(rewards.sum(), total)
    assert torch.equal(turn_rewards(output[:4], aggregation), rewards[:4])
    torch.testing.assert_close(rewards.cumsum(0), prefix_values(output[None], aggregation)[0])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"head": "sigmoid"}, "pays for length"),
        ({"head": "sigmoid", "loss": "bce"}, "pays for length"),
        ({"loss": "bce"}, "head tanh is none"),
        ({"loss": "bce", "head": "linear", "aggregation": "mean"}, "head linear is none"),
        ({"loss": "bce", "aggregation": "telescoping"}, "head tanh is none"),
        ({"margin": 0.4}, "does nothing with loss mse"),
        ({"loss": "margin", "margin": 0.0}, "`margin` is 0.0"),
        (
            {"loss": "margin", "head": "sigmoid", "aggregation": "mean", "margin": 1.0},
            "are 1 apart",
        ),
        ({"loss": "margin", "aggregation": "telescoping", "margin": 2.0}, "are 2 apart"),
        ({"loss": "pairwise", "balance": "none"}, "reads neither"),
        ({"loss": "margin", "positive_weight": 2.0}, "reads neither"),
    ],
)
def test_what_does_not_go_together_is_refused_with_the_reason(changes, reason) -> None:
    with pytest.raises(ValueError, match=reason):
        replace(ProcessRewardConfig(), **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"head": "sigmoid", "aggregation": "telescoping", "loss": "bce"},
        {"head": "sigmoid", "aggregation": "mean", "loss": "mse"},
        {"head": "linear", "loss": "pairwise", "loss_on": "prefixes"},
        {"head": "tanh", "loss": "margin", "margin": 5.0},
        {"head": "linear", "aggregation": "mean", "loss": "margin", "margin": 5.0},
    ],
)
def test_what_goes_together_is_taken(changes) -> None:
    assert replace(ProcessRewardConfig(), **changes).loss == changes["loss"]
