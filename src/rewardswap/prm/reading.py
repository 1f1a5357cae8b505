"""The language model that a process reward model reads turns with."""

from pathlib import Path

import torch
from torch import nn

from rewardswap.models.loading import load_language_model
from rewardswap.prm.loading import origin_of
from rewardswap.prm.manifest import tokenizer_hash
from rewardswap.prm.store import Collection, first_policy
from rewardswap.rewards.backbone import POLICY
from rewardswap.rewards.cache import FeatureCache
from rewardswap.rewards.features import fingerprint, frozen_copy
from rewardswap.rewards.process import ProcessRewardModel
from rewardswap.rewards.saving import read_head


def policy_for(
    collection: Collection, backbone: str, policy: str | None, device: str
) -> tuple[nn.Module, str]:
    """The frozen trunk that reads a collection at `backbone policy`, and the name of its model.

    `policy` is its folder or name, none for the collection's first policy. Another backbone reads
    text, and needs of a policy nothing but its device. Raises ValueError where the policy has
    another tokenizer than those of the collection, or is named and does nothing.
    """
    if backbone != POLICY:
        if policy is not None:
            raise ValueError(f"policy does nothing with backbone {backbone!r}, which reads text")
        return nn.Linear(1, 1, device=torch.device(device)), backbone
    first, weights = first_policy(collection)
    name = policy or first
    language_model = load_language_model(name, device)
    if tokenizer_hash(language_model.tokenizer) != collection.manifest["tokenizer_sha256"]:
        raise ValueError(
            f"model {name!r} has another tokenizer than the policies of the collection and cannot "
            "read their tokens; give --policy one that has theirs, or fit with --model.backbone"
        )
    if policy is None and fingerprint(language_model.model) != weights:
        raise ValueError(
            f"model {name!r} has other weights than when it collected; give --policy the model "
            "whose trunk shall read turns"
        )
    return frozen_copy(language_model.model), name


def model_for(
    collection: Collection,
    folder: Path,
    policy: str | None,
    device: str,
    cache: FeatureCache | None,
) -> ProcessRewardModel:
    """The process reward model of a folder, ready to read a collection.

    `policy` is the model whose trunk it reads with, none for the one that it was trained with.
    Raises ValueError as `policy_for` and `from_pretrained` do.
    """
    backbone = read_head(folder).config.backbone
    trained_with = origin_of(folder).get("policy") if backbone == POLICY else None
    trunk, _ = policy_for(collection, backbone, policy or trained_with, device)
    return ProcessRewardModel.from_pretrained(folder, trunk, cache)
