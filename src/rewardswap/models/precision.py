"""Weights of two bytes in the model, and of four where the optimizer moves them."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from rewardswap.models.shards import put
from rewardswap.ranks import Ranks


def round_weights(model: nn.Module) -> None:
    """Round all parameters to bfloat16, in place; buffers (rotary frequencies) stay float32."""
    for parameter in model.parameters():
        parameter.data = parameter.data.to(torch.bfloat16)
    config = getattr(model, "config", None)
    if config is not None:
        config.dtype = torch.bfloat16


class MasterWeights(nn.Module):
    """What the optimizer moves: float32, so that a step far below a bfloat16's spacing counts.

    A parameter that is float32, or frozen, is its own master. Of any other trained one the master
    is a copy (ours: 2 bytes of weight, 4 of master, 8 of moments, and a gradient of 4). Gradients
    of micro-batches add up in float32.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self._rounded: list[tuple[nn.Parameter, nn.Parameter]] = []
        self.weights = nn.ParameterList(self._master(p) for p in model.parameters())

    def _master(self, parameter: nn.Parameter) -> nn.Parameter:
        if parameter.dtype == torch.float32 or not parameter.requires_grad:
            return parameter
        master = nn.Parameter(parameter.detach().float())
        self._rounded.append((parameter, master))
        return master

    def reset_gradients(self, *, zero: bool) -> None:
        """Forget all gradients; with `zero` trained weights get one of zeros."""
        for weight in self.weights:
            weight.grad = torch.zeros_like(weight) if zero and weight.requires_grad else None
        for parameter, _ in self._rounded:
            parameter.grad = None

    def take_gradients(self) -> None:
        """Add what one backward pass left in the model to the masters' gradients."""
        for parameter, master in self._rounded:
            if parameter.grad is not None:
                gradient = parameter.grad.float()
                master.grad = gradient if master.grad is None else master.grad.add_(gradient)
                parameter.grad = None

    def add_gradients(self, ranks: Ranks) -> None:
        """Replace gradients by their sums over all ranks; one that no rank has stays none."""
        trained = [weight for weight in self.weights if weight.requires_grad]
        had = torch.tensor([float(weight.grad is not None) for weight in trained])
        ranks.add(had)
        for weight, count in zip(trained, had.tolist(), strict=True):
            if count:
                weight.grad = torch.zeros_like(weight) if weight.grad is None else weight.grad
                ranks.add(weight.grad)

    @torch.no_grad()
    def write(self) -> None:
        """Round the masters into the model."""
        for parameter, master in self._rounded:
            parameter.copy_(master)

    def apart(self) -> list[Tensor]:
        """The masters that are not the model's own parameters."""
        return [master.detach() for _, master in self._rounded]

    @torch.no_grad()
    def restore(self, copies: Sequence[Tensor]) -> None:
        """Bring back copies of what `apart` gave, in the masters alone."""
        for (_, master), value in zip(self._rounded, copies, strict=True):
            put(value, master)
