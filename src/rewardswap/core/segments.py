"""Masked and segmented sums: the only index arithmetic of the library.

Masked places may hold anything, NaN included: they are replaced, never multiplied by zero.
"""

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
    return masked_fill_zero(values, mask).sum() / _count(mask)


def masked_variance(values: Float[Tensor, "*s"], mask: Bool[Tensor, "*s"]) -> Float[Tensor, ""]:
    """Unbiased variance over the mask, Σ(x - mean)² / (n - 1).

    Raises ValueError if the mask has fewer than two places.
    """
    count = _count(mask)
    if count < 2:
        raise ValueError("the unbiased variance needs a mask of at least 2 places, got 1")
    centred = masked_fill_zero(values - masked_mean(values, mask), mask)
    return centred.square().sum() / (count - 1)


def masked_whiten(
    values: Float[Tensor, "*s"], mask: Bool[Tensor, "*s"], *, shift_mean: bool = True
) -> Float[Tensor, "*s"]:
    """(x - mean) / sqrt(variance + 1e-8) over the mask and 0 off it, unbiased variance.

    With `shift_mean` false the mean is added back. Raises ValueError below two places.
    """
    mean = masked_mean(values, mask)
    whitened = (values - mean) * torch.rsqrt(masked_variance(values, mask) + 1e-8)
    return masked_fill_zero(whitened if shift_mean else whitened + mean, mask)


def segment_count(segment: Int[Tensor, "*s"]) -> int:
    """How many segments the ids 0..S-1 speak of.

    Raises ValueError for a negative id.
    """
    if segment.numel() == 0:
        return 0
    if int(segment.min()) < 0:
        raise ValueError(f"segment ids must be >= 0, got {int(segment.min())}; use `dense_ids`")
    return int(segment.max()) + 1


def segment_sum(values: Float[Tensor, "*s"], segment: Int[Tensor, "*s"]) -> Float[Tensor, "S"]:
    """Sum of the values of each segment, in order of the ids 0..S-1."""
    zeros = values.new_zeros(segment_count(segment))
    return zeros.index_add(0, segment.flatten(), values.flatten())


def segment_size(segment: Int[Tensor, "*s"]) -> Int[Tensor, "S"]:
    """How many places each segment has."""
    return torch.bincount(segment.flatten(), minlength=segment_count(segment))


def segment_mean(values: Float[Tensor, "*s"], segment: Int[Tensor, "*s"]) -> Float[Tensor, "S"]:
    """Mean of the values of each segment; 0 for an id that no place has."""
    return segment_sum(values, segment) / segment_size(segment).clamp(min=1)


def spread(by_segment: Float[Tensor, "S"], segment: Int[Tensor, "*s"]) -> Float[Tensor, "*s"]:
    """Each segment's value at every place of the segment."""
    return by_segment[segment]


def dense_ids(*keys: Int[Tensor, "M"]) -> Int[Tensor, "M"]:
    """Ids 0..S-1 of the distinct tuples (key_1[m], key_2[m], ...), in the tuples' sorted order."""
    inverse: Tensor = torch.unique(torch.stack(keys, dim=1), dim=0, return_inverse=True)[1]
    return inverse


def _count(mask: Bool[Tensor, "*s"]) -> int:
    count = int(mask.sum())
    if count == 0:
        raise ValueError("the mask is empty: there is nothing to average over")
    return count
