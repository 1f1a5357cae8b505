"""SAPO by hand."""

import pytest
from worked import chain_loss, each, group_of, logistic, near, two_trajectories_loss

from rewardswap.methods.sapo import SAPO


def test_advantages_are_z_scores() -> None:
    assert each(SAPO(), group_of([[1.0], [0.0, 0.0]])) == near([0.7071058, -0.7071058])


def test_loss_by_hand() -> None:
    # X: q - c = .15 and .6; Y: r - 1 = .8 with temperature 1.05
    # X: -4 (.5374298 + .6456563) / 2 = -2.3661723; Y: 3.8095238 x .6984652 = 2.6608198
    # .25 x -2.3661723 + .75 x 2.6608198 = 1.4040718
    value, metrics = two_trajectories_loss(SAPO())
    assert value == near(1.4040718)
    x = -4 * (logistic(0.15) + logistic(0.6)) / 2
    y = 4 / 1.05 * logistic(1.05 * 0.8)
    assert value == near(0.25 * x + 0.75 * y)
    assert not any(name.startswith("clip") for name in metrics)


def test_temperatures_go_by_the_sign_of_the_advantage() -> None:
    # X: -2 (s(2 x .15) + s(2 x .6)) / 2; Y: s(4 x .8)
    x = -2 * (logistic(0.3) + logistic(1.2)) / 2
    method = SAPO(temperature_positive=2.0, temperature_negative=4.0)
    assert two_trajectories_loss(method)[0] == near(0.25 * x + 0.75 * logistic(3.2))


def test_the_whole_chain_has_its_pinned_loss() -> None:
    assert chain_loss(SAPO()) == near(0.04748801)


def test_choices_of_a_clip_are_refused() -> None:
    with pytest.raises(ValueError, match="clip_low does nothing in SAPO"):
        SAPO(clip_low=0.1)
