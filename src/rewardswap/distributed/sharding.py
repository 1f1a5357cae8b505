"""FSDP2 from outside: every rank holds a part of each weight, its gradient and its moments.

arXiv:2304.11277 (FSDP); `torch.distributed.fsdp.fully_shard`. The model's own code stays as it is.
"""

import types
from collections.abc import Callable
from typing import Any, TypeVar

import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.fsdp import register_fsdp_forward_method as register_forward

from rewardswap.models.recomputing import recomputable_layers

T = TypeVar("T")


def shard(model: nn.Module) -> None:
    """Divide all weights of `model` among the ranks, in place; layer by layer they come together.

    Gradients add over ranks, as the weights of a loss sum to one over all of them; nothing is
    averaged.
    """
    kind = next(model.parameters()).device.type
    mesh = init_device_mesh(kind, (dist.get_world_size(),))
    for layer in recomputable_layers(model):
        fully_shard(layer, mesh=mesh)
    # also the outermost: between passes every weight is in parts
    fully_shard(model, mesh=mesh, reshard_after_forward=True)
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(True)
    whole: Any = model
    whole.together = types.MethodType(_together, model)
    register_forward(model, "together")


def _together(_: nn.Module, compute: Callable[[], T]) -> T:
    """Run `compute` with all of the model's weights at hand, as in its forward pass."""
    return compute()
