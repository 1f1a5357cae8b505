import math
from dataclasses import replace

import pytest
import torch

from rewardswap.rewards.config import ProcessRewardConfig
from rewardswap.rewards.losses import (
    cross_entropy,
    fit_loss,
    pair_loss,
    pair_weights,
    prefix_loss,
    prefix_pair_loss,
    total_loss,
)

VALUES = torch.tensor([[0.5, 0.75], [0.5, 0.5]])
MASK = torch.tensor([[True, True], [True, False]])
TARGET = torch.tensor([1.0, 0.0])


def lead(difference: torch.Tensor) -> torch.Tensor:
    """A cost that shows which pairs were compared."""
    return difference


def test_total_loss_by_hand() -> None:
    value = torch.tensor([0.75, 0.5])
    # ((.75 - 1)^2 + (.5 - 0)^2) / 2 = (.0625 + .25) / 2
    assert total_loss(value, TARGET, torch.ones(2)).item() == 0.15625
    # weights 3 and 1: (.1875 + .25) / 4
    assert total_loss(value, TARGET, torch.tensor([3.0, 1.0])).item() == 0.109375


def test_prefix_loss_by_hand() -> None:
    # prefixes .5 -> 1, .75 -> 1, .5 -> 0: (.25 + .0625 + .25) / 3
    assert prefix_loss(VALUES, MASK, TARGET, torch.ones(2)).item() == 0.1875
    # weights 1 and 2: (.25 + .0625 + 2 * .25) / 4
    assert prefix_loss(VALUES, MASK, TARGET, torch.tensor([1.0, 2.0])).item() == 0.203125


def test_prefix_loss_ignores_padding() -> None:
    wide = torch.cat([VALUES, torch.full((2, 3), 7.0)], dim=1)
    mask = torch.cat([MASK, torch.zeros(2, 3).bool()], dim=1)
    weight = torch.tensor([1.0, 2.0])
    narrow = prefix_loss(VALUES, MASK, TARGET, weight)
    assert prefix_loss(wide, mask, TARGET, weight).item() == narrow.item()


def test_both_losses_agree_on_single_turns() -> None:
    value, weight = torch.tensor([0.3, -0.2]), torch.tensor([1.0, 2.0])
    total = total_loss(value, TARGET, weight)
    mask = torch.ones(2, 1).bool()
    assert prefix_loss(value[:, None], mask, TARGET, weight).item() == total.item()


def test_cross_entropy_by_hand() -> None:
    value = torch.tensor([0.75, 0.5, 1.0000001, 0.25])
    target = torch.tensor([1.0, 0.0, 1.0, 0.5])
    # -log .75, -log .5, 0 (rounded to outside), -(log .25 + log .75) / 2
    expected = [-math.log(0.75), math.log(2), 0.0, -(math.log(0.25) + math.log(0.75)) / 2]
    assert cross_entropy(value, target).tolist() == pytest.approx(expected, abs=1e-6)
    weighted = total_loss(value[:2], target[:2], torch.tensor([3.0, 1.0]), cross_entropy)
    assert weighted.item() == pytest.approx((3 * expected[0] + expected[1]) / 4)


def test_pairs_are_those_of_a_task_where_it_has_both_kinds() -> None:
    target = torch.tensor([1.0, 0.0, 0.0, 1.0, 0.0])
    task = torch.tensor([0, 0, 0, 1, 1])
    # task 0: 3 trajectories on 2 pairs; task 1: 2 on one
    expected = torch.zeros(5, 5)
    expected[0, 1] = expected[0, 2] = 1.5
    expected[3, 4] = 2.0
    assert pair_weights(target, task).tolist() == expected.tolist()


def test_a_task_of_one_kind_is_compared_with_the_batch() -> None:
    target = torch.tensor([1.0, 0.0, 0.0, 0.0])
    task = torch.tensor([0, 0, 1, 1])
    # task 0: 2 on its pair; task 1: 2 on the pairs of the success with its two failures
    expected = torch.zeros(4, 4)
    expected[0] = torch.tensor([0.0, 2.0, 1.0, 1.0])
    assert pair_weights(target, task).tolist() == expected.tolist()
    assert pair_weights(torch.zeros(3), torch.tensor([0, 0, 1])).sum() == 0


def test_graded_targets_are_compared_too() -> None:
    weights = pair_weights(torch.tensor([1.0, 0.5, 0.0]), torch.zeros(3, dtype=torch.int64))
    # three pairs, each with one of three
    assert weights.tolist() == [[0, 1, 1], [0, 0, 1], [0, 0, 0]]


def test_pair_loss_by_hand() -> None:
    value, task = torch.tensor([0.5, 0.25, 0.75]), torch.zeros(3, dtype=torch.int64)
    target = torch.tensor([1.0, 0.0, 0.0])
    # leads .25 and -.25
    assert pair_loss(value, target, task, lead).item() == 0.0
    assert pair_loss(value, target, task, torch.exp).item() == pytest.approx(
        (math.exp(0.25) + math.exp(-0.25)) / 2
    )
    assert pair_loss(value, torch.ones(3), task, torch.exp).item() == 0.0


@pytest.mark.parametrize("loss_on", ["total", "prefixes"])
def test_margin_and_pairwise_by_hand(loss_on: str) -> None:
    output, lengths = torch.tensor([[0.75], [0.5]]), torch.tensor([1, 1])
    task = torch.zeros(2, dtype=torch.int64)

    def loss(**changes) -> float:
        config = replace(ProcessRewardConfig(), loss_on=loss_on, **changes)
        return fit_loss(output, lengths, TARGET, torch.ones(2), task, config).item()

    # the success leads by .25
    assert loss(loss="margin") == 0.25
    assert loss(loss="margin", margin=0.25) == 0.0
    assert loss(loss="pairwise") == pytest.approx(math.log(1 + math.exp(-0.25)))


def test_pairs_of_prefixes_compare_equal_numbers_of_turns() -> None:
    # a success of one turn, failures of two and one
    values = torch.tensor([[0.5, 9.0], [0.25, 0.75], [1.0, 9.0]])
    mask = torch.tensor([[True, False], [True, True], [True, False]])
    target, task = torch.tensor([1.0, 0.0, 0.0]), torch.zeros(3, dtype=torch.int64)
    # after one turn .5 - .25 and .5 - 1, after two there is no pair
    assert prefix_pair_loss(values, mask, target, task, lead).item() == -0.125
    # with a second success of two turns: 4 on 4 pairs after one turn, 2 on one pair after two
    values = torch.cat([values, torch.tensor([[0.0, 1.0]])])
    mask = torch.cat([mask, torch.tensor([[True, True]])])
    target, task = torch.tensor([1.0, 0.0, 0.0, 1.0]), torch.zeros(4, dtype=torch.int64)
    # leads .25, -.5, -.25, -1, then .25: (4 * (-1.5 / 4) + 2 * .25) / 6
    found = prefix_pair_loss(values, mask, target, task, lead).item()
    assert found == pytest.approx(-1.0 / 6)


@pytest.mark.parametrize("aggregation", ["sum", "mean", "telescoping"])
@pytest.mark.parametrize("loss_on", ["total", "prefixes"])
@pytest.mark.parametrize("loss", ["mse", "bce", "margin", "pairwise"])
def test_no_loss_depends_on_padding_or_on_the_order(aggregation, loss_on, loss) -> None:
    if loss == "bce" and aggregation == "sum":
        pytest.skip("refused: the sum is no probability")
    head = "sigmoid" if loss == "bce" else "tanh"
    config = replace(
        ProcessRewardConfig(), aggregation=aggregation, loss_on=loss_on, loss=loss, head=head
    )
    draw = torch.Generator().manual_seed(3)
    lengths = torch.tensor([3, 1, 4, 2, 4, 3])
    task = torch.tensor([0, 0, 1, 1, 2, 2])
    target = torch.tensor([1.0, 0.0, 0.0, 1.0, 0.0, 0.0])
    output = torch.rand(6, 4, generator=draw) * (torch.arange(4) < lengths[:, None])
    weight = torch.rand(6, generator=draw) + 0.5

    def loss_of(rows: list[int], width: int) -> torch.Tensor:
        wide = torch.zeros(6, width)
        wide[:, :4] = output
        numbers = (lengths[rows], target[rows], weight[rows], task[rows])
        return fit_loss(wide[rows], *numbers, config)

    plain = loss_of(list(range(6)), 4)
    assert plain > 0
    torch.testing.assert_close(loss_of(list(range(6)), 7), plain)
    torch.testing.assert_close(loss_of([5, 2, 0, 3, 1, 4], 4), plain)
