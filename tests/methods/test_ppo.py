"""PPO with a critic by hand."""

from dataclasses import replace

import pytest
import torch
from worked import chain_loss, fixed_groups, group_of, near, two_trajectories_loss, valued

from rewardswap.methods.ppo import PPO
from rewardswap.types import Group

VALUES = [[[0.5], [0.25, 0.75]]]


def one_success(stop: str = "done") -> Group:
    """A turn of one token and a turn of two; the reward is 1 at the end."""
    group = group_of([[0.0, 1.0]], tokens=[[1, 2]], members={0: {"stop": stop}})
    return valued(group, VALUES, last=0.5)


def estimates(method: PPO, group: Group) -> list[float]:
    (found,) = method.algorithm().advantage([group])
    return found[group.token_mask].tolist()


def test_with_a_trace_of_one_it_is_the_return_less_the_value() -> None:
    # G = .5, 1, 1 with a discount between the turns only, less .5, .25, .75
    assert estimates(PPO(discount=0.5, whiten=False), one_success()) == near([0.0, 0.75, 0.25])


def test_the_recursion_by_hand() -> None:
    # A3 = 1 - .75 = .25; A2 = .75 - .25 + .5 A3 = .625
    # A1 = .5 x .25 - .5 + .5 x .5 x A2 = -.21875
    method = PPO(discount=0.5, trace=0.5, whiten=False)
    assert estimates(method, one_success()) == near([-0.21875, 0.625, 0.25])


def test_an_episode_that_a_limit_cut_bootstraps_and_one_that_ended_does_not() -> None:
    # .5 behind the end: A3 = 1 + .5 x .5 - .75 = .5, A2 = .5 + A3 = 1, A1 = -.375 + .5 A2
    method = PPO(discount=0.5, whiten=False)
    assert estimates(method, one_success("turn_limit")) == near([0.125, 1.0, 0.5])


def test_over_turns_the_value_is_that_of_the_first_token() -> None:
    # V = .5, .25: A2 = 1 - .25 = .75 at both tokens, A1 = .5 x .25 - .5 + .5 A2 = 0
    method = PPO(discount=0.5, credit="turn", whiten=False)
    assert estimates(method, one_success()) == near([0.0, 0.75, 0.75])


def test_the_length_adaptive_trace_by_hand() -> None:
    # lambda = 1 - 1 / (.5 x 3) = 1/3: A2 = .5 + .25 / 3, A1 = -.375 + .5 A2 / 3
    method = PPO(discount=0.5, trace_alpha=0.5, whiten=False)
    second = 0.5 + 0.25 / 3
    assert estimates(method, one_success()) == near([-0.375 + second / 6, second, 0.25])


def test_the_value_target_is_advantage_and_value() -> None:
    group = one_success()
    critic = PPO(discount=0.5).algorithm().critic
    assert critic is not None
    (target,) = critic.target([group])
    assert target[group.token_mask].tolist() == near([0.5, 1.0, 1.0])
    assert not target[~group.token_mask].any()


@pytest.mark.parametrize("credit", ["token", "turn"])
def test_values_off_the_mask_and_other_trajectories_do_not_leak(credit: str) -> None:
    group = one_success()
    junk = torch.where(group.token_mask, group.columns["value"], 100.0)
    method = PPO(discount=0.5, credit=credit, whiten=False)
    alone = estimates(method, group)
    assert estimates(method, group.with_column("value", junk)) == alone
    longer = valued(group_of([[0.5] * 4], task="b", tokens=[[5, 1, 1, 3]]), [[[0.3]]])
    beside = method.algorithm().advantage([longer, group])[1]
    assert beside[group.token_mask].tolist() == alone


def test_a_divergence_as_reward_stands_on_its_own_tokens() -> None:
    # turn rewards -.1 and 1 - .5: token rewards -.1 | -.2, 1 - .3; G = .4, .5, .7
    group = valued(group_of([[-0.1, 0.5]], tokens=[[1, 2]]), [[[0.0]]])
    group = group.with_column("token_reward", torch.tensor([[[-0.1, 0.0], [-0.2, -0.3]]]))
    assert estimates(PPO(discount=1.0, whiten=False), group) == near([0.4, 0.5, 0.7])


def test_advantages_are_whitened_over_the_tokens_that_are_trained_on() -> None:
    groups = fixed_groups()
    found = PPO().algorithm().advantage(groups)
    trained = []
    for group, advantage in zip(groups, found, strict=True):
        chosen = torch.tensor(group.selected)[:, None, None] & group.token_mask
        trained.append(advantage[chosen])
    joined = torch.cat(trained)
    assert float(joined.mean()) == near(0.0)
    assert float(joined.std()) == near(1.0)
    whole = [replace(group, selected=(True,) * len(group.trajectories)) for group in groups]
    assert not torch.equal(PPO().algorithm().advantage(whole)[0], found[0])


def test_loss_by_hand() -> None:
    assert two_trajectories_loss(PPO())[0] == near(1.11875)


def test_the_whole_chain_has_its_pinned_loss() -> None:
    assert chain_loss(PPO()) == near(-0.02061560)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"discount": 1.5}, r"discount must be in \[0, 1\]"),
        ({"trace": -0.1}, r"trace must be in \[0, 1\]"),
        ({"trace_alpha": 0.0}, "trace_alpha must be above 0"),
        ({"trace": 0.5, "trace_alpha": 0.5}, "trace does nothing with trace_alpha"),
        ({"critic_warmup": -1}, "critic_warmup must be at least 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PPO(**settings)
