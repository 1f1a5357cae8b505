"""REINFORCE++-Baseline by hand."""

from worked import chain_loss, each, group_of, near, two_trajectories_loss

from rewardswap.methods.reinforce_plus_plus import ReinforcePlusPlus, ReinforcePlusPlusBaseline

GROUPS = (
    group_of([[0.0, 1.0], [0.0]]),
    group_of([[1.0], [1.0], [0.0, 0.0, 1.0], [0.0]], task="b"),
)


def test_the_mean_of_the_group_comes_off_first() -> None:
    # less .5: .5, -.5; less .75: .25, .25, .25, -.75
    # mean 0, variance (.25 + .25 + 3 x .0625 + .5625) / 5 = .25, std .5
    expected = near([1.0, -1.0, 0.5, 0.5, 0.5, -1.5])
    assert each(ReinforcePlusPlusBaseline(), *GROUPS) == expected
    assert each(ReinforcePlusPlus(baseline="group"), *GROUPS) == expected
    assert each(ReinforcePlusPlus(), *GROUPS) != expected


def test_rounding_is_not_blown_up_beside_an_equal_group() -> None:
    # the last bit of three thirds is no signal, here nor where the next group is equal as well
    third = 1 / 3
    almost = group_of([[third], [third + 3e-8], [third]], outcomes=[0.0] * 3)
    equal = group_of([[0.7]] * 7, task="b")
    assert each(ReinforcePlusPlusBaseline(), almost, equal) == [0.0] * 10


def test_loss_by_hand() -> None:
    assert two_trajectories_loss(ReinforcePlusPlusBaseline())[0] == near(1.11875)


def test_the_whole_chain_has_its_pinned_loss() -> None:
    assert chain_loss(ReinforcePlusPlusBaseline()) == near(0.18390211)
