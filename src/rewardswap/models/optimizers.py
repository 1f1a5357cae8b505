"""AdamW with moments of four bytes or of one. Only this file imports bitsandbytes."""

from collections.abc import Iterable
from typing import Any, Literal

import torch
from torch import nn

OptimizerName = Literal["adamw", "adamw_8bit"]
"""adamw: 8 bytes of moments for a weight; adamw_8bit: 2.03, in blocks of 256 numbers."""


def make_adamw(
    name: OptimizerName,
    parameters: Iterable[nn.Parameter],
    *,
    learning_rate: float,
    betas: tuple[float, float],
    weight_decay: float,
) -> torch.optim.Optimizer:
    """The named optimizer.

    bitsandbytes keeps moments of tensors of fewer than 4,096 numbers in float32. Raises ValueError
    without the extra `adamw-8bit`.
    """
    settings: dict[str, Any] = {"lr": learning_rate, "betas": betas, "weight_decay": weight_decay}
    if name == "adamw":
        return torch.optim.AdamW(parameters, **settings)
    try:
        from bitsandbytes.optim import AdamW8bit
    except ImportError as error:
        raise ValueError(
            "policy.optimizer adamw_8bit needs bitsandbytes; pip install "
            "'rewardswap[adamw-8bit]', or use adamw"
        ) from error
    made: torch.optim.Optimizer = AdamW8bit(parameters, **settings)
    return made
