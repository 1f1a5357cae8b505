"""Decoupled PPO by hand."""

from worked import chain_loss, each, fixed_groups, near, two_trajectories_loss

from rewardswap.methods.decoupled_ppo import DecoupledPPO
from rewardswap.methods.ppo import PPO


def test_advantages_are_those_of_ppo() -> None:
    assert each(DecoupledPPO(), *fixed_groups()) == each(PPO(), *fixed_groups())


def test_loss_by_hand() -> None:
    # X: c min(r, clip(r)) = .5 x 1.2 and 1 x 1.2; Y: 1.8
    # .25 (-.6 - 1.2) / 2 + .75 x 1.8 = 1.125
    value, metrics = two_trajectories_loss(DecoupledPPO())
    assert value == near(1.125)
    assert metrics["clip_high_share"] == near(0.25)


def test_the_rollout_engine_says_what_the_behavior_was() -> None:
    assert DecoupledPPO().algorithm().behavior == "engine"


def test_the_whole_chain_has_its_pinned_loss() -> None:
    assert chain_loss(DecoupledPPO()) == near(-0.01937787)
