"""OPO by hand."""

from worked import chain_loss, each, group_of, near, two_trajectories_loss

from rewardswap.methods.opo import OPO


def test_the_baseline_weighs_returns_by_all_action_tokens() -> None:
    # lengths 1 + 2 and 1: baseline (3 x 1 + 1 x 0) / 4 = .75
    group = group_of([[0.0, 1.0], [0.0]], tokens=[[1, 2], [1]])
    assert each(OPO(), group) == [0.25, -0.75]
    # as many turns, other tokens: (1 x 1 + 7 x 0) / 8
    assert each(OPO(), group_of([[1.0], [0.0]], tokens=[[1], [7]])) == [0.875, -0.125]


def test_loss_by_hand() -> None:
    assert two_trajectories_loss(OPO())[0] == near(1.11875)


def test_the_whole_chain_has_its_pinned_loss() -> None:
    assert chain_loss(OPO()) == near(0.05552344)
