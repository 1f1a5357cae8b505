"""DPPO by hand."""

import pytest
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

from rewardswap.methods.dppo import DPPO


def test_advantages_are_z_scores() -> None:
    assert each(DPPO(), group_of([[1.0], [0.0, 0.0]])) == near([0.7071058, -0.7071058])


def test_loss_by_hand() -> None:
    # X: pi rises by .075, kept: -.65 ln .325 = .7305546; by .3, silent
    # Y: A < 0 and pi rises, kept: 1.8 ln .9 = -.1896489
    # .25 x .7305546 / 2 - .75 x .1896489 = -.0509174
    value, metrics = two_trajectories_loss(DPPO())
    assert value == near(-0.0509174)
    assert metrics["clip_high_share"] == near(0.125)
    assert metrics["clip_low_share"] == 0


def test_a_bound_on_what_falls_by_hand() -> None:
    # Y may only rise with a reversed step: pi .5 -> .25 is a fall of .25 > .2
    algorithm = DPPO().algorithm()
    batch = algorithm.weigh(TWO_TRAJECTORIES, 0.25)
    _, metrics = algorithm.loss(scores_of(batch, [[0.325, 0.8], [0.25]]), batch)
    assert metrics["clip_low_share"] == near(0.75)


def test_the_kl_form_by_hand() -> None:
    # X: .5 ln (.5 / .8) + .5 ln (.5 / .2) = .2231436 > .2, silent; Y moves back, kept at any KL
    assert two_trajectories_loss(DPPO(divergence="kl"))[0] == near(-0.0509174)
    # within .23 it speaks: -1.6 ln .8 = .3570297 more, an eighth of it
    wide = DPPO(divergence="kl", clip_high=0.23)
    assert two_trajectories_loss(wide)[0] == near(-0.0509174 + 0.125 * 0.3570297)


def test_a_cap_on_the_ratio_by_hand() -> None:
    # Y: 1.5 ln .9 = -.1580408: .0913193 - .75 x .1580408
    value, metrics = two_trajectories_loss(DPPO(ratio_maximum=1.5))
    assert value == near(-0.0272112)
    assert metrics["ratio_capped_share"] == near(0.875)


def test_a_silent_token_has_no_gradient_and_others_that_of_their_ratio() -> None:
    # -q A w: -.65 / 8, 0, 1.8 x .75
    algorithm = DPPO().algorithm()
    batch = algorithm.weigh(TWO_TRAJECTORIES, 0.25)
    scores = scores_of(batch, MOVED)
    algorithm.loss(scores, batch)[0].backward()
    assert scores.logprob.grad[batch.action_mask].tolist() == near([-0.08125, 0.0, 1.35])


def test_the_whole_chain_has_its_pinned_loss() -> None:
    assert chain_loss(DPPO()) == near(-0.16121403)


def test_a_cap_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="ratio_maximum must be at least 1"):
        DPPO(ratio_maximum=0.5)
