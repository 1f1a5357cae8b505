"""Dr.GRPO by hand."""

from worked import chain_loss, each, group_of, near, two_trajectories_loss

from rewardswap.methods.dr_grpo import DrGRPO


def test_advantages_are_centred_and_not_divided() -> None:
    # mean 1/4
    group = group_of([[0.0, 1.0], [0.0], [0.0], [0.0]])
    assert each(DrGRPO(), group) == [0.75, -0.25, -0.25, -0.25]


def test_loss_by_hand() -> None:
    # one trajectory of each kind, each token 1 / 512 of it:
    # (.25 (-.65 - 1.2) + .75 x 1.8) / 512 = .8875 / 512
    assert two_trajectories_loss(DrGRPO())[0] == near(0.8875 / 512, 1e-8)
    assert two_trajectories_loss(DrGRPO(average_tokens=10.0))[0] == near(0.08875)


def test_the_whole_chain_has_its_pinned_loss() -> None:
    # tokens weigh .25 or .75 over 512 and three trajectories of their kind
    assert chain_loss(DrGRPO()) == near(0.00033326, 1e-8)
