"""CISPO by hand."""

from worked import (
    MOVED,
    TWO_TRAJECTORIES,
    chain_loss,
    each,
    group_of,
    near,
    scores_of,
    two_trajectories_loss,
)

from rewardswap.methods.cispo import CISPO


def test_advantages_are_z_scores() -> None:
    assert each(CISPO(), group_of([[1.0], [0.0, 0.0]])) == near([0.7071058, -0.7071058])


def test_loss_by_hand() -> None:
    # X: -.65 ln .325 = .7305546, -1.2 ln .8 = .2677723; Y: 1.2 ln .9 = -.1264326
    # .25 (.7305546 + .2677723) / 2 - .75 x .1264326 = .0299664
    value, metrics = two_trajectories_loss(CISPO())
    assert value == near(0.0299664)
    # X's second and Y's weight are held, on either sign of A
    assert metrics["clip_high_share"] == near(0.875)


def test_a_held_token_keeps_its_gradient() -> None:
    # d loss / d log pi = -weight A: .65, 1.2 and -1.2 times the tokens' .125, .125 and .75
    algorithm = CISPO().algorithm()
    batch = algorithm.weigh(TWO_TRAJECTORIES, 0.25)
    scores = scores_of(batch, MOVED)
    algorithm.loss(scores, batch)[0].backward()
    gradient = scores.logprob.grad[batch.action_mask].tolist()
    assert gradient == near([-0.08125, -0.15, 0.9])


def test_the_whole_chain_has_its_pinned_loss() -> None:
    assert chain_loss(CISPO()) == near(-0.09932667)
