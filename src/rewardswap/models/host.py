"""Copies of a learner's state that take no memory of a GPU."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from rewardswap.models.shards import is_part


def host_copy(state: Any) -> Any:
    """A deep copy of nested state that shares no tensor with it, complete when this returns.

    Tensors of a CUDA device go to pinned CPU memory, all of them under way at once; any other is
    cloned where it is.
    """
    devices: dict[torch.device, None] = {}

    def copied(part: Any) -> Any:
        if isinstance(part, Tensor):
            if part.device.type == "cuda":
                devices[part.device] = None
            return _copied_out(part.detach())
        if isinstance(part, Mapping):
            return {name: copied(value) for name, value in part.items()}
        if isinstance(part, list | tuple):
            return type(part)(copied(value) for value in part)
        return part

    found = copied(state)
    for device in devices:
        torch.cuda.synchronize(device)
    return found


def _copied_out(tensor: Tensor) -> Tensor:
    if is_part(tensor) and tensor.device.type == "cuda":
        return tensor.to("cpu", copy=True)
    if tensor.device.type != "cuda":
        return tensor.clone()
    pinned = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    return pinned.copy_(tensor, non_blocking=True)
