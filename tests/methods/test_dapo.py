"""DAPO by hand."""

import pytest
from worked import EQUAL_VALUES, chain_loss, each, group_of, near, two_trajectories_loss

from rewardswap.methods.dapo import DAPO


def test_advantages_are_z_scores() -> None:
    # mean .5, std .7071068
    assert each(DAPO(), group_of([[1.0], [0.0, 0.0]])) == near([0.7071058, -0.7071058])


def test_loss_by_hand() -> None:
    # the higher clip: .25 (-.65 - 1.28) / 2 + .75 x 1.8 = 1.10875
    assert two_trajectories_loss(DAPO())[0] == near(1.10875)


def test_every_token_counts_the_same() -> None:
    # three tokens in one average: (-.65 - 1.28 + 1.8) / 3
    assert two_trajectories_loss(DAPO(mixing="concatenated"))[0] == near(-0.13 / 3)


@pytest.mark.parametrize("value", [0.0, *EQUAL_VALUES])
def test_groups_of_equal_returns_are_left_out_and_collected_again(value: float) -> None:
    algorithm = DAPO().algorithm()
    assert algorithm.collections == 10
    assert not algorithm.keep(group_of([[value], [0.0, value], [value]]))
    assert algorithm.keep(group_of([[value], [0.0, value], [value + 0.01]]))


def test_the_whole_chain_has_its_pinned_loss() -> None:
    assert chain_loss(DAPO()) == near(0.13991993)


def test_no_collection_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match="collections must be at least 1"):
        DAPO(collections=0)
