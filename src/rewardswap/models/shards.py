"""Tensors that several ranks hold in parts, known by what they can do: nobody need be asked."""

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

T = TypeVar("T")


def is_sharded(model: nn.Module) -> bool:
    """Whether the weights of a model are parts of tensors that all ranks hold together."""
    return is_part(next(model.parameters()))


def is_part(value: Any) -> bool:
    """Whether a tensor is a part of one that all ranks hold together."""
    return hasattr(value, "full_tensor")


def together(model: nn.Module, compute: Callable[[], T]) -> T:
    """Run `compute` with all weights of a model at hand, as in its forward pass."""
    if not is_sharded(model):
        return compute()
    found: T = model.together(compute)  # type: ignore[operator]
    return found


def gathered(tensor: Tensor) -> Tensor:
    """All parts as one tensor; every rank must ask. Of any other tensor itself."""
    part: Any = tensor
    found: Tensor = part.full_tensor() if is_part(tensor) else part
    return found


@torch.no_grad()
def put(value: Tensor, target: Tensor) -> None:
    """Copy `value` into `target`; of a whole one, where the target is in parts, this rank's."""
    if not is_part(target):
        target.copy_(value)
        return
    held: Any = target
    mine: Any = value
    if is_part(value):
        held.to_local().copy_(mine.to_local())
        return
    parts = torch.chunk(value, held.device_mesh.size())
    rank = held.device_mesh.get_local_rank()
    held.to_local().copy_(parts[rank] if rank < len(parts) else value[:0])


def parted_like(value: Any, like: Tensor) -> Any:
    """A tensor in parts on the devices of `like`, where that is in parts and of the same shape;
    else the value."""
    if not is_part(like) or getattr(value, "shape", None) != like.shape:
        return value
    held: Any = like
    if is_part(value) and value.device_mesh == held.device_mesh:
        return value
    found = torch.zeros_like(like, dtype=value.dtype)
    put(value, found)
    return found
