"""Recorded inputs as tensors, computed tensors as recorded outputs."""

import math
from typing import Any

import torch
from torch import Tensor

from rewardswap.core import anchors, reductions, segments

Values = dict[str, Any]


def tensor(value: Any) -> Tensor:
    return torch.tensor(numbers(value), dtype=torch.float32)


def numbers(value: Any) -> Any:
    if isinstance(value, list):
        return [numbers(v) for v in value]
    return float(value)


def mask_of(value: Any) -> Tensor:
    return tensor(value) > 0


def ids(names: list[Any]) -> Tensor:
    return anchors.anchor_ids([""] * len(names), [str(n) for n in names])


def leaf(x: Values, key: str = "log_prob") -> Tensor:
    return tensor(x[key]).requires_grad_()


def weights_of(x: Values, mask: Tensor) -> Tensor:
    mode = x.get("loss_agg_mode", "token-mean")
    if mode == "seq-mean-token-mean":
        return reductions.row_mean_weights(mask)
    if mode == "seq-mean-token-sum":
        return reductions.constant_weights(mask, float(len(mask)))
    return reductions.token_mean_weights(mask)


def reduced(x: Values, loss: Tensor, key: str, logprob: Tensor, gradient: str) -> Values:
    total = reductions.weighted_sum(loss, weights_of(x, mask_of(x["response_mask"])))
    total.backward()
    return {key: total.detach(), gradient: logprob.grad}


def share(flags: Tensor, mask: Tensor) -> Tensor:
    return segments.masked_mean(flags.float(), mask)


def plain(value: Any) -> Any:
    """Recorded or computed values as nested lists of numbers, texts and truth values."""
    if isinstance(value, Tensor):
        return plain(value.tolist())
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {key: plain(v) for key, v in value.items()}
    if value in ("NaN", "Infinity", "-Infinity"):
        return math.nan if value == "NaN" else float(value)
    return value
