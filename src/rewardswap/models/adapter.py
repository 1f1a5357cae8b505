"""LoRA by peft: small trained matrices beside frozen weights. Only this file imports peft."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


def add_adapter(model: Any, rank: int, alpha: float, targets: Sequence[str]) -> None:
    """Freeze `model` and put an adapter beside its linear layers, in place; the numbers stay.

    `targets` are ends of layers' names; none: every linear layer but the head. The adapter is
    float32 whatever the model is. Raises ValueError without the extra `lora`, for a target that
    names no layer, and for the head, which is read apart from its layer.
    """
    lora: Any = _peft()
    wanted: Any = list(targets) or "all-linear"
    names = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    for target in targets:
        if not any(name == target or name.endswith(f".{target}") for name in names):
            ends = sorted({name.rpartition(".")[2] for name in names})
            raise ValueError(
                f"policy.lora_targets {target!r} names no linear layer of {type(model).__name__}; "
                f"its layers end in {', '.join(ends)}"
            )
    settings = lora.LoraConfig(r=rank, lora_alpha=alpha, target_modules=wanted)
    lora.inject_adapter_in_model(settings, model)
    if isinstance(model.get_output_embeddings(), lora.tuners.tuners_utils.BaseTunerLayer):
        raise ValueError("policy.lora_targets cannot name the head; leave it out")
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.float()
    model.eval()


def has_adapter(model: nn.Module) -> bool:
    """Whether `add_adapter` was here."""
    return any(_adapted(model))


@contextmanager
def adapter_off(model: nn.Module) -> Iterator[None]:
    """The model as it was before it had an adapter."""
    layers = list(_adapted(model))
    for layer in layers:
        layer.enable_adapters(False)
    try:
        yield
    finally:
        for layer in layers:
            layer.enable_adapters(True)


@torch.no_grad()
def merged_state(model: nn.Module) -> dict[str, Tensor]:
    """All weights under the names of the model without adapter, the adapter added where it is.

    Only the adapted layers' weights are new tensors: W + alpha / rank B A, rounded once.
    """
    layers: dict[str, Any] = dict(model.named_modules())
    state: dict[str, Tensor] = {}
    for name, value in model.state_dict().items():
        layer_name, mark, end = name.partition(".base_layer.")
        if mark and end == "weight":
            delta = layers[layer_name].get_delta_weight("default")
            state[f"{layer_name}.weight"] = (value.float() + delta.float()).to(value.dtype)
        elif mark:
            state[f"{layer_name}.{end}"] = value
        elif ".lora_" not in name:
            state[name] = value
    return state


def _adapted(model: nn.Module) -> Iterator[Any]:
    """The layers with an adapter; duck-typed, so that a model without one needs no peft."""
    return (module for module in model.modules() if hasattr(module, "lora_A"))


def _peft() -> Any:
    try:
        import peft
    except ImportError as error:
        raise ValueError(
            "policy.lora_rank needs peft; pip install 'rewardswap[lora]', or leave it out"
        ) from error
    return peft
