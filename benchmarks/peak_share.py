"""Which share of the machine's measured matrix products an update reaches.

Counted are 6 operations for each parameter of the trunk and token, 12 x layers x width x length for
the attention of each token, and 6 x width x vocabulary for each action token; embeddings are looked
up. What is counted is checked against torch's own counter.
"""

from statistics import median
from typing import Any

import torch
from merged import MICROBATCH, groups_of
from players import Place, make_player, make_policy, seconds
from torch.utils.flop_counter import FlopCounterMode

from rewardswap.annotation import annotated
from rewardswap.methods.grpo import GRPO
from rewardswap.models.batching import Batch, microbatches
from rewardswap.models.policy import Policy


def measured_peak(place: Place) -> float:
    """The most operations a second of a square matrix product of ten tries."""
    size = 1536 if place.device == "cpu" else 8192
    dtype = getattr(torch, place.dtype)
    left, right = (torch.randn(size, size, device=place.device).to(dtype) for _ in range(2))
    quickest = min(seconds(lambda: left @ right, place.device) for _ in range(10))
    return 2 * size**3 / quickest


def operations(model: Any, batch: Batch, *, padded: bool) -> float:
    """Of one step: forward and backward passes, of real tokens or of padding too."""
    config = model.config
    embedded = model.get_input_embeddings().weight.numel()
    trunk = sum(p.numel() for p in model.get_decoder().parameters()) - embedded
    width = config.num_attention_heads * config.head_dim
    head = 6 * config.hidden_size * config.vocab_size * int(batch.action_mask.sum())
    lengths = [
        float(batch.lengths[rows].max() if padded else batch.lengths[row])
        for rows in microbatches(batch, MICROBATCH)
        for row in rows
    ]
    layers = config.num_hidden_layers
    return head + sum(6 * trunk * n + 12 * layers * width * n * n for n in lengths)


def weighed(policy: Policy, groups: list[Any]) -> Batch:
    """What one optimizer step reads."""
    algorithm = GRPO().algorithm()
    batch, _, _ = annotated(groups, algorithm, policy, None, None)
    return algorithm.weigh(batch, 0.0)


def check(model: str, turns: int) -> float:
    """What is counted over what torch counts, padding in both; attention as plain products."""
    place = Place(attention="eager")
    player = make_player(model, "ALFWorld", place)
    policy = make_policy(player, MICROBATCH)
    batch = weighed(policy, groups_of("ALFWorld", turns, player))
    with FlopCounterMode(display=False) as counter:
        policy.step(batch, GRPO().algorithm().loss)
    return operations(player.model, batch, padded=True) / counter.get_total_flops()


def measure(model: str, turns: int, place: Place, repeats: int) -> dict[str, Any]:
    """Operations a second of optimizer steps, beside the peak measured in between."""
    player = make_player(model, "ALFWorld", place)
    policy = make_policy(player, MICROBATCH)
    batch = weighed(policy, groups_of("ALFWorld", turns, player))
    loss = GRPO().algorithm().loss
    policy.step(batch, loss)
    reached, shares = [], []
    for _ in range(repeats):
        taken = seconds(lambda: policy.step(batch, loss), place.device)
        reached.append(operations(player.model, batch, padded=False) / taken)
        shares.append(reached[-1] / measured_peak(place))
    tokens = int(batch.lengths.sum())
    return {
        "model": model,
        "parameters": sum(p.numel() for p in player.model.parameters()),
        "tokens": tokens,
        "padding": 1
        - operations(player.model, batch, padded=False)
        / operations(player.model, batch, padded=True),
        "gigaflops": median(reached) / 1e9,
        "share": median(shares),
        "tokens_per_second": tokens
        * median(reached)
        / operations(player.model, batch, padded=False),
    }
