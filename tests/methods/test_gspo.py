"""GSPO by hand."""

from worked import chain_loss, each, group_of, near, two_trajectories_loss

from rewardswap.methods.gspo import GSPO


def test_advantages_are_z_scores() -> None:
    assert each(GSPO(), group_of([[1.0], [0.0, 0.0]])) == near([0.7071058, -0.7071058])


def test_loss_by_hand() -> None:
    # X: s = sqrt(1.3 x 1.6) = 1.4422205, c = sqrt(.5 x 1) = .7071068, q = s c = 1.0198039,
    # held at c + 4e-4 = .7075068; Y: 1.8; every trajectory counts the same:
    # -.25 x .7075068 + .75 x 1.8 = 1.1731233
    value, metrics = two_trajectories_loss(GSPO())
    assert value == near(1.1731233)
    # the whole sequence is held, its first token too
    assert metrics["clip_high_share"] == near(0.25)


def test_loss_inside_the_clip_by_hand() -> None:
    # with a clip of .5: -.25 x 1.0198039 + 1.35
    assert two_trajectories_loss(GSPO(clip_high=0.5))[0] == near(1.0950490)


def test_the_whole_chain_has_its_pinned_loss() -> None:
    assert chain_loss(GSPO()) == near(0.12585179)
