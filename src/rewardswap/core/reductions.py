"""Reductions as weights [B, T]: how much each token's loss counts in one optimizer step.

Weights are decided once on the whole batch of an optimizer step, so micro-batches simply add.
They are 0 off the mask and sum to one, `constant_weights` excepted.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from rewardswap.core.segments import dense_ids, segment_size


def weighted_sum(values: Float[Tensor, "B T"], weights: Float[Tensor, "B T"]) -> Float[Tensor, ""]:
    """Σ w·x over the places of non-zero weight; whatever stands elsewhere is ignored."""
    return torch.where(weights != 0, values, torch.zeros_like(values)).mul(weights).sum()


def token_mean_weights(mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """Every token counts the same: 1 / number of tokens (DAPO, arXiv:2503.14476).

    Raises ValueError if the mask is empty.
    """
    _refuse_empty(mask)
    return mask.float() / mask.sum()


def trajectory_mean_weights(
    mask: Bool[Tensor, "B T"], trajectory: Int[Tensor, "B T"]
) -> Float[Tensor, "B T"]:
    """Every trajectory counts the same, and its tokens among themselves (GRPO, arXiv:2402.03300).

    Indifferent to a trajectory being one row or several. Raises ValueError if the mask is empty.
    """
    return _segment_mean_weights(mask, trajectory)


def row_mean_weights(mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """Every row that has a token counts the same, and its tokens among themselves.

    Raises ValueError if the mask is empty.
    """
    return _segment_mean_weights(
        mask, torch.arange(len(mask), device=mask.device)[:, None].expand_as(mask)
    )


def turn_mean_weights(
    mask: Bool[Tensor, "B T"], turn: Int[Tensor, "B T"], trajectory: Int[Tensor, "B T"]
) -> Float[Tensor, "B T"]:
    """Every turn of every trajectory counts the same, and its tokens among themselves.

    With one row per turn it is the mean over rows of the mean over tokens. Raises ValueError if
    the mask is empty.
    """
    return _segment_mean_weights(mask, trajectory, turn)


def constant_weights(mask: Bool[Tensor, "B T"], constant: float) -> Float[Tensor, "B T"]:
    """Every token counts 1 / constant, whatever the lengths (Dr.GRPO, arXiv:2503.20783).

    Raises ValueError for a constant that is not positive.
    """
    if constant <= 0:
        raise ValueError(f"the constant must be > 0 tokens, got {constant}")
    return mask.float() / constant


def _segment_mean_weights(
    mask: Bool[Tensor, "B T"], *keys: Int[Tensor, "B T"]
) -> Float[Tensor, "B T"]:
    _refuse_empty(mask)
    segment = dense_ids(*(key[mask] for key in keys))
    size = segment_size(segment)
    weights = mask.float()
    weights[mask] = 1.0 / (size[segment] * len(size)).float()
    return weights


def _refuse_empty(mask: Bool[Tensor, "B T"]) -> None:
    if not mask.any():
        raise ValueError("no token is trained on: the mask is empty, so no weights sum to one")
