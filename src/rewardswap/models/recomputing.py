"""Gradient checkpointing: layers keep only their inputs and run again in the backward pass."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint


def recomputable_layers(model: nn.Module) -> list[nn.Module]:
    """The layers that can run again; raises ValueError if the model marks none as such."""
    # here, since settings import this module, and a mistyped key should not wait five seconds more
    from transformers.modeling_layers import GradientCheckpointingLayer

    layers: list[nn.Module] = [
        module for module in model.modules() if isinstance(module, GradientCheckpointingLayer)
    ]
    if not layers:
        raise ValueError(
            f"policy.gradient_checkpointing finds no layer in {type(model).__name__} that can run "
            "again; leave it out"
        )
    return layers


@contextmanager
def layer_inputs(model: nn.Module) -> Iterator[list[Tensor]]:
    """What enters each layer of a forward pass within, in order: all hidden states but the last."""
    seen: list[Tensor] = []
    hooks = [
        layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
        for layer in recomputable_layers(model)
    ]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


@contextmanager
def recomputing(layers: Sequence[nn.Module]) -> Iterator[None]:
    """Forward passes within keep only what enters `layers`; the gradients are equal to the bit.

    transformers' own switch works in training mode alone, where dropout would make other numbers
    of the same tokens; here the model stays in evaluation mode.
    """
    again = partial(checkpoint, use_reentrant=False, preserve_rng_state=False)
    try:
        for layer in layers:
            layer.forward = partial(again, layer.forward)
        yield
    finally:
        for layer in layers:
            vars(layer).pop("forward", None)
