"""Masked and segmented sums: the only index arithmetic of the library.

Masked places may hold anything, NaN included: they are replaced, never multiplied by zero.
"""

from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


def masked_fill_zero(values: Float[Tensor, "*s"], mask: Bool[Tensor, "*s"]) -> Float[Tensor, "*s"]:
    """Values on the mask, exactly 0 (and a gradient of exactly 0) off it."""
    return torch.where(mask, values, torch.zeros_like(values))


def masked_mean(values: Float[Tensor, "*s"], mask: Bool[Tensor, "*s"]) -> Float[Tensor, ""]:
    """Mean over the mask.

    Raises ValueError if the mask is empty.
    """
    return masked_fill_zero(values, mask).sum() / _count(mask, at_least=1)


def masked_variance(values: Float[Tensor, "*s"], mask: Bool[Tensor, "*s"]) -> Float[Tensor, ""]:
    """Unbiased variance over the mask, Σ(x - mean)² / (n - 1).

    Raises ValueError if the mask has fewer than two places.
    """
    count = _count(mask, at_least=2)
    centered = masked_fill_zero(values - masked_mean(values, mask), mask)
    return centered.square().sum() / (count - 1)


def masked_whiten(
    values: Float[Tensor, "*s"],
    mask: Bool[Tensor, "*s"],
    *,
    shift_mean: bool = True,
    outside: Literal["zero", "whitened"] = "zero",
) -> Float[Tensor, "*s"]:
    """(x - mean) / sqrt(variance + 1e-8), statistics over the mask, unbiased variance.

    With `shift_mean` false the mean is added back. Off the mask it is 0, or whitened by the same
    statistics (verl's convention). Raises ValueError below two places.
    """
    mean = masked_mean(values, mask)
    whitened = (values - mean) * torch.rsqrt(masked_variance(values, mask) + 1e-8)
    if not shift_mean:
        whitened = whitened + mean
    return masked_fill_zero(whitened, mask) if outside == "zero" else whitened


def segment_size(segment: Int[Tensor, "*s"]) -> Int[Tensor, "S"]:
    """How many places each of the segments 0..S-1 has.

    Raises ValueError for a negative id.
    """
    if segment.numel() > 0 and int(segment.min()) < 0:
        raise ValueError(
            f"segment ids must be >= 0, got {int(segment.min())}: take them from `dense_ids` of "
            "the places on the mask"
        )
    return torch.bincount(segment.flatten())


def segment_sum(values: Float[Tensor, "*s"], segment: Int[Tensor, "*s"]) -> Float[Tensor, "S"]:
    """Sum of the values of each segment, in order of the ids 0..S-1."""
    zeros = values.new_zeros(len(segment_size(segment)))
    return zeros.index_add(0, segment.flatten(), values.flatten())


def segment_mean(values: Float[Tensor, "*s"], segment: Int[Tensor, "*s"]) -> Float[Tensor, "S"]:
    """Mean of the values of each segment; 0 for an id that no place has."""
    return segment_sum(values, segment) / segment_size(segment).clamp(min=1)


def segment_extreme(
    values: Float[Tensor, "*s"], segment: Int[Tensor, "*s"], which: Literal["amin", "amax"]
) -> Float[Tensor, "S"]:
    """Smallest or largest value of each segment; 0 for an id that no place has."""
    zeros = values.new_zeros(len(segment_size(segment)))
    return zeros.scatter_reduce(
        0, segment.flatten(), values.flatten(), reduce=which, include_self=False
    )


def spread(by_segment: Float[Tensor, "S"], segment: Int[Tensor, "*s"]) -> Float[Tensor, "*s"]:
    """Each segment's value at every place of the segment."""
    return by_segment[segment]


def dense_ids(*keys: Int[Tensor, "M"]) -> Int[Tensor, "M"]:
    """Ids 0..S-1 of the distinct tuples (key_1[m], key_2[m], ...), in the tuples' sorted order."""
    inverse: Tensor = torch.unique(torch.stack(keys, dim=1), dim=0, return_inverse=True)[1]
    return inverse


def _count(mask: Bool[Tensor, "*s"], at_least: int) -> int:
    count = int(mask.sum())
    if count < at_least:
        raise ValueError(f"the mask has {count} places, this statistic needs {at_least} or more")
    return count
