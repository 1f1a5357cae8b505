"""SoftmaxGRPO by hand."""

import pytest
from worked import chain_loss, each, group_of, near, two_trajectories_loss

from rewardswap.methods.softmax_grpo import SoftmaxGRPO


def test_advantages_by_hand() -> None:
    # e^(1/.3) = 28.0316: 4 x 28.0316 / (2 x 28.0316 + 2) - 1 = .931107
    found = each(SoftmaxGRPO(), group_of([[0.0], [0.0, 1.0], [0.0], [1.0]]))
    assert found == near([-0.931110, 0.931110, -0.931110, 0.931110], 1e-5)
    # e^(0), e^(5/3) = 5.2945, e^(10/3) = 28.0316; three times their shares of 34.3261, less 1
    found = each(SoftmaxGRPO(), group_of([[0.0], [0.5], [0.5, 0.5]]))
    assert found == near([-0.912603, -0.537278, 1.449881], 1e-5)


def test_a_lone_success_counts_nearly_as_the_best_and_a_hot_one_as_centred() -> None:
    lone = group_of([[1.0], [0.0], [0.0], [0.0]])
    assert each(SoftmaxGRPO(temperature=0.01), lone) == near([3.0, -1.0, -1.0, -1.0])
    hot = [1000 * a for a in each(SoftmaxGRPO(temperature=1000.0), lone)]
    assert hot == near([0.75, -0.25, -0.25, -0.25], 1e-3)


def test_advantages_sum_to_zero_and_are_bounded() -> None:
    found = each(SoftmaxGRPO(), group_of([[0.1], [0.9], [0.4, 0.2], [0.0]]))
    assert sum(found) == near(0.0)
    assert all(-1 <= a <= 3 for a in found)


def test_loss_by_hand() -> None:
    # the higher clip: .25 (-.65 - 1.28) / 2 + .75 x 1.8
    assert two_trajectories_loss(SoftmaxGRPO())[0] == near(1.10875)


def test_the_whole_chain_has_its_pinned_loss() -> None:
    assert chain_loss(SoftmaxGRPO()) == near(0.09066815)


def test_a_temperature_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="temperature must be above 0"):
        SoftmaxGRPO(temperature=0.0)
