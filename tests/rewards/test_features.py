from dataclasses import replace

import numpy as np
import pytest
import torch

from rewardswap.rewards.config import PRESETS, ProcessRewardConfig
from rewardswap.rewards.features import fingerprint, freeze, frozen_copy, turn_features

EVERY = [
    replace(PRESETS["action"], layers=layers, features=features)
    for layers in ("last", "all")
    for features in ("action", "after_observation")
]


def states(backbone, tokens: list[int]) -> tuple[torch.Tensor, ...]:
    """All hidden states of one unpadded row."""
    with torch.no_grad():
        output = backbone(torch.tensor([tokens]), output_hidden_states=True)
    return tuple(layer[0] for layer in output.hidden_states)


def test_action_reads_the_last_action_token_of_the_last_layer(backbone, make) -> None:
    trajectory = make([7, 8, 9])
    features = turn_features([trajectory], freeze(backbone), PRESETS["action"])
    last = states(backbone, [2, 7, 4, 20, 1, 8, 4, 21, 1])[-1]
    torch.testing.assert_close(features.values, last[[4, 8]], atol=1e-5, rtol=0)
    assert features.lengths == (2,)


def test_after_observation_reads_all_layers_before_the_next_action(backbone, make) -> None:
    trajectory = make([7, 8, 9])
    features = turn_features([trajectory], freeze(backbone), PRESETS["after_observation"])
    every = torch.cat(states(backbone, [2, 7, 4, 20, 1, 8, 4, 21, 1, 9, 4]), dim=-1)
    torch.testing.assert_close(features.values, every[[6, 10]], atol=1e-5, rtol=0)


def test_a_turn_that_does_not_extend_is_read_in_the_next_row(backbone, make) -> None:
    trajectory = make([7, 8, 9, 10], fresh=(2,))
    features = turn_features([trajectory], freeze(backbone), PRESETS["after_observation"])
    first = torch.cat(states(backbone, [2, 7, 4, 20, 1, 8, 4, 21, 1]), dim=-1)
    second = torch.cat(states(backbone, [9, 4, 22, 1, 10, 4]), dim=-1)
    expected = torch.stack([first[6], second[1], second[5]])
    torch.testing.assert_close(features.values, expected, atol=1e-5, rtol=0)


def test_windows_without_history_read_every_turn_once(backbone, make) -> None:
    trajectory = make([7, 8, 9, 10], fresh=(1, 2))
    for config in EVERY:
        assert len(turn_features([trajectory], freeze(backbone), config).values) == 3


def test_without_final_tokens_the_last_turn_is_read_at_its_action(backbone, make) -> None:
    trajectory = replace(make([7, 8]), final_context_ids=np.array([], dtype=np.int64))
    after, at = (
        turn_features([trajectory], freeze(backbone), replace(PRESETS["action"], features=where))
        for where in ("after_observation", "action")
    )
    assert torch.equal(after.values, at.values)


@pytest.mark.parametrize("config", EVERY, ids=lambda c: f"{c.features}-{c.layers}")
def test_batches_padding_and_order_do_not_change_features(
    backbone, revealing, config: ProcessRewardConfig
) -> None:
    some = revealing[:12]
    trunk = freeze(backbone)
    together = turn_features(some, trunk, config)
    alone = turn_features(some, trunk, replace(config, tokens_per_batch=1))
    torch.testing.assert_close(together.values, alone.values, atol=1e-5, rtol=0)
    order = np.random.default_rng(0).permutation(len(some)).tolist()
    shuffled = turn_features([some[n] for n in order], trunk, config)
    expected = together.of(order)
    torch.testing.assert_close(shuffled.values, expected.values, atol=1e-5, rtol=0)
    assert shuffled.lengths == expected.lengths


def test_the_same_call_gives_the_same_bits(backbone, revealing) -> None:
    trunk = freeze(backbone)
    first, second = (
        turn_features(revealing[:20], trunk, PRESETS["after_observation"]) for _ in range(2)
    )
    assert torch.equal(first.values, second.values)


def test_features_that_are_not_finite_are_refused_with_the_task(backbone, make) -> None:
    trunk = freeze(backbone)
    trunk.embed_tokens.weight[9].fill_(float("nan"))
    episodes = [make([7, 8, 8], task="cup-1"), make([7, 8, 9, 8], task="cup-2", index=3)]
    # NaN spreads over its whole row, forbidden attention included: all 3 turns of one episode
    with pytest.raises(ValueError, match=r"task 'cup-2', episode 3, turn 0 .*3 turns"):
        turn_features(episodes, trunk, PRESETS["after_observation"])


def test_no_trajectories_are_refused(backbone) -> None:
    with pytest.raises(ValueError, match="no trajectories"):
        turn_features([], freeze(backbone), PRESETS["action"])


def test_a_frozen_copy_does_not_follow_the_policy(backbone, make) -> None:
    copy = frozen_copy(backbone)
    before = turn_features([make([7, 8])], copy, PRESETS["action"]).values
    assert not any(p.requires_grad for p in copy.parameters())
    assert all(p.requires_grad for p in backbone.parameters())
    with torch.no_grad():
        for parameter in backbone.parameters():
            parameter.add_(0.1)
    assert torch.equal(turn_features([make([7, 8])], copy, PRESETS["action"]).values, before)


def test_fingerprint_speaks_of_the_weights(backbone) -> None:
    first = fingerprint(frozen_copy(backbone))
    assert first == fingerprint(frozen_copy(backbone)) and len(first) == 64
    with torch.no_grad():
        backbone.model.layers[0].mlp.up_proj.weight[0, 0] += 1e-3
    assert fingerprint(frozen_copy(backbone)) != first
