"""GMPO by hand."""

import pytest
from worked import chain_loss, each, group_of, near, two_trajectories_loss

from rewardswap.methods.gmpo import GMPO


def test_advantages_are_z_scores() -> None:
    assert each(GMPO(), group_of([[1.0], [0.0, 0.0]])) == near([0.7071058, -0.7071058])


def test_loss_by_hand() -> None:
    # X: ln .65 = -.4307829 inside ln .5 +- .4, ln 1.6 = .4700036 held at .4;
    # exp((-.4307829 + .4) / 2) = .9847264; Y: A < 0 takes the larger, 1.8
    # -.25 x .9847264 + .75 x 1.8 = 1.1038184
    value, metrics = two_trajectories_loss(GMPO())
    assert value == near(1.1038184)
    # one of X's two tokens
    assert metrics["clip_high_share"] == near(0.125)


def test_loss_inside_the_clip_by_hand() -> None:
    # sqrt(.65 x 1.6) = 1.0198039
    assert two_trajectories_loss(GMPO(clip_high=0.5))[0] == near(1.35 - 0.25 * 1.0198039)


def test_the_whole_chain_has_its_pinned_loss() -> None:
    assert chain_loss(GMPO()) == near(0.12483902)


def test_a_mask_on_importance_is_refused() -> None:
    with pytest.raises(ValueError, match="importance_cap mask"):
        GMPO(importance_cap="mask")
