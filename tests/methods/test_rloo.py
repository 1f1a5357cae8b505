"""RLOO by hand."""

from worked import chain_loss, each, group_of, near, two_trajectories_loss

from rewardswap.methods.rloo import RLOO


def test_the_baseline_is_the_mean_of_the_others() -> None:
    # 1 - 0 = 1; 0 - 1/3
    lone = group_of([[0.0, 1.0], [0.0], [0.0], [0.0]])
    assert each(RLOO(), lone) == near([1.0, -1 / 3, -1 / 3, -1 / 3])
    # 1 - (0 + .5)/2 = .75; 0 - (1 + .5)/2 = -.75; .5 - (1 + 0)/2 = 0
    assert each(RLOO(), group_of([[1.0], [0.0], [0.25, 0.25]])) == near([0.75, -0.75, 0.0])


def test_loss_by_hand() -> None:
    # PPO's clip: .25 (-.65 - 1.2) / 2 + .75 x 1.8
    assert two_trajectories_loss(RLOO())[0] == near(1.11875)


def test_the_whole_chain_has_its_pinned_loss() -> None:
    assert chain_loss(RLOO()) == near(0.08067903)
