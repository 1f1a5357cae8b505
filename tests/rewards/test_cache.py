from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors import SafetensorError

from rewardswap.errors import UnwrittenError
from rewardswap.rewards import cache as rewards_cache
from rewardswap.rewards.cache import FeatureCache
from rewardswap.rewards.config import PRESETS
from rewardswap.rewards.features import freeze, turn_features
from rewardswap.rewards.process import ProcessRewardModel

OURS = replace(PRESETS["after_observation"], tokens_per_batch=100)
NOTHING = np.array([], dtype=np.int64)


def files(cache: FeatureCache) -> list:
    return sorted(cache.folder.rglob("*.safetensors"))


def test_the_same_bits_with_and_without(backbone, revealing, tmp_path) -> None:
    trunk, some = freeze(backbone), revealing[:12]
    plain = turn_features(some, trunk, OURS)
    cache = FeatureCache(tmp_path)
    first = turn_features(some, trunk, OURS, cache=cache)
    passes = cache.misses
    assert passes > 1 and cache.hits == 0
    assert len(files(cache)) == passes
    second = turn_features(some, trunk, OURS, cache=cache)
    assert (cache.hits, cache.misses) == (passes, passes)
    assert torch.equal(plain.values, first.values) and torch.equal(plain.values, second.values)
    assert first.lengths == second.lengths == plain.lengths
    assert not list(tmp_path.rglob("*.tmp"))


def test_numbers_come_from_the_file(backbone, make, tmp_path) -> None:
    def broken(*args, **kwargs):
        raise AssertionError("the backbone was run")

    trunk, cache = freeze(backbone), FeatureCache(tmp_path)
    first = turn_features([make([7, 8])], trunk, OURS, cache=cache)
    trunk.forward = broken
    assert torch.equal(turn_features([make([7, 8])], trunk, OURS, cache=cache).values, first.values)
    with pytest.raises(AssertionError, match="was run"):
        turn_features([make([7, 9])], trunk, OURS, cache=cache)


@pytest.mark.parametrize("change", ["tokens", "places", "layers", "weights", "layout"])
def test_whatever_decides_features_decides_the_key(backbone, make, tmp_path, change) -> None:
    trunk, cache = freeze(backbone), FeatureCache(tmp_path)
    # without an end that was read, both places are read in the same tokens
    trajectory, config = replace(make([7, 8, 9]), final_context_ids=NOTHING), OURS
    turn_features([trajectory], trunk, config, cache=cache)
    if change == "tokens":
        trajectory = replace(make([7, 10, 9]), final_context_ids=NOTHING)
    elif change == "places":
        config = replace(config, features="action")
    elif change == "layers":
        config = replace(config, layers="last")
    elif change == "weights":
        trunk.norm.weight[0] += 1.0
    else:
        trunk.config.rope_parameters["rope_theta"] = 500.0
    plain = turn_features([trajectory], trunk, config)
    cached = turn_features([trajectory], trunk, config, cache=cache)
    assert (cache.hits, cache.misses) == (0, 2)
    assert torch.equal(plain.values, cached.values)


def test_settings_of_the_head_read_what_is_there(backbone, revealing, tmp_path) -> None:
    cache = FeatureCache(tmp_path)
    plain = ProcessRewardModel(backbone, replace(OURS, epochs=2))
    plain.fit(revealing)
    for _ in range(2):
        model = ProcessRewardModel(backbone, replace(OURS, epochs=2), cache)
        model.fit(revealing)
        assert torch.equal(model.rewards(revealing)[3], plain.rewards(revealing)[3])
    passes = cache.misses
    other = ProcessRewardModel(
        backbone, replace(OURS, epochs=1, head="sigmoid", aggregation="telescoping"), cache
    )
    other.fit(revealing)
    assert cache.misses == passes == len(files(cache))


@pytest.mark.parametrize("damage", ["cut", "flipped", "text", "empty"])
def test_a_damaged_file_is_named(backbone, make, tmp_path, damage) -> None:
    trunk, cache = freeze(backbone), FeatureCache(tmp_path)
    turn_features([make([7, 8])], trunk, OURS, cache=cache)
    (path,) = files(cache)
    written = path.read_bytes()
    flipped = written[:-1] + bytes([written[-1] ^ 1])
    path.write_bytes(
        {"cut": written[:-4], "flipped": flipped, "text": b"features", "empty": b""}[damage]
    )
    with pytest.raises(ValueError, match=rf"{path.name} are damaged: .*delete the file"):
        turn_features([make([7, 8])], trunk, OURS, cache=cache)


def test_a_full_disk_is_said_and_nothing_is_left(backbone, make, tmp_path, monkeypatch) -> None:
    def full(*args, **kwargs):
        raise SafetensorError("Error while serializing: I/O error: No space left (os error 28)")

    trunk, cache = freeze(backbone), FeatureCache(tmp_path)
    monkeypatch.setattr(rewards_cache, "save_file", full)
    with pytest.raises(UnwrittenError, match=r"\.safetensors cannot be written: No space left"):
        turn_features([make([7, 8])], trunk, OURS, cache=cache)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
