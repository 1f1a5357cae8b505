"""Weights from a folder or from a trainer into a module, all of them or none."""

from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor, nn

from rewardswap.rollout.engine import Weights


def named_weights(weights: Weights) -> dict[str, Tensor]:
    """All weights by name; of a folder those of its safetensors files.

    Raises ValueError for a folder without any.
    """
    if not isinstance(weights, Path):
        return dict(weights)
    files = sorted(weights.glob("*.safetensors"))
    if not files:
        raise ValueError(f"there are no safetensors files in {weights} to take weights from")
    found: dict[str, Tensor] = {}
    for path in files:
        with safe_open(path, framework="pt") as file:
            found |= {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    return found


@torch.no_grad()
def load_weights(module: nn.Module, weights: Weights) -> None:
    """Copy weights into `module`; tied ones may be missing.

    Raises ValueError, and then copies none, for a name that the module does not have, for another
    shape, and where a weight is missing.
    """
    given = named_weights(weights)
    state = module.state_dict()
    for name, value in given.items():
        if name not in state:
            raise ValueError(f"weight {name!r} is not one of {type(module).__name__}")
        if value.shape != state[name].shape:
            raise ValueError(
                f"weight {name!r} has the shape {list(value.shape)}, not {list(state[name].shape)}"
            )
    written = {state[name].data_ptr() for name in given}
    missing = sorted(name for name, value in state.items() if value.data_ptr() not in written)
    if missing:
        raise ValueError(f"weight {missing[0]!r} is missing, and {len(missing) - 1} more")
    for name, value in given.items():
        state[name].copy_(value)
